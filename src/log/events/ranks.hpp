// Ranks that a message names itself: "[Rank 3]", "process 1 terminated", "TP7".
#pragma once

#include <string_view>

namespace trapline {

// -1: none.
int rank_in(std::string_view text);

// "allreduce" of "OpType=ALLREDUCE", "reduce_scatter" of "OpType=_REDUCE_SCATTER_BASE"; empty: none.
std::string_view collective_in(std::string_view text);

}  // namespace trapline
