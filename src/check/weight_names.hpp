// What a name says of a tensor that lies in a checkpoint: rows of those are not dropped or filled.
#pragma once

#include <string_view>

namespace trapline::check {

// "weight", "optimizer" (its state), or empty.
std::string_view kept_as(std::string_view name);

}  // namespace trapline::check
