// "did you mean ...?"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trapline {

// The word of `known` that `typed` is most likely a slip of: at most one edit in three letters, where a swap
// of two neighbours counts as one.
std::optional<std::string> nearest(std::string_view typed, std::span<const std::string> known);

}  // namespace trapline
