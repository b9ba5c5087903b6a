// Facts as text to a finding as text.
#pragma once

#include <string>
#include <string_view>

namespace trapline {

// The answer of trapline_diagnose. Throws only when memory is exhausted.
std::string diagnose_json(std::string_view facts);

}  // namespace trapline
