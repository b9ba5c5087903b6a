// What a line must hold for a regular expression to match it, so that most expressions are never compiled.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// One literal for each alternative of the expression (RE2's syntax): a line that has none of them, in small
// letters, does not match. Empty where some alternative has no literal of `least` bytes.
std::vector<std::string> needed_literals(std::string_view pattern, std::size_t least);

}  // namespace trapline
