// The last resort: what is left to say of a violation where the diagnosis itself fails.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/finding.hpp"
#include "trapline/types.h"

namespace trapline::diagnose {

// "cross_entropy: 1 of 4 elements of target is not valid: 10, at position 2". Allocates nothing, since memory
// may be what was lacking. `contract`: the row's id; `scan`: null when nothing is known. Returns the length;
// the text ends in a NUL and is cut to fit.
std::size_t bare_sentence(std::string_view contract, const trapline_scan* scan, std::span<char> text);

// The same as a finding; `why`: why the cause cannot be named.
Finding bare_finding(std::string_view contract, const trapline_scan* scan, std::string_view why);

}  // namespace trapline::diagnose
