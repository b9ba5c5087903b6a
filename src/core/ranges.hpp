// A set of numbers in words: "0-4, 6, 7".
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace trapline {

// Three or more in a row are a range. After `most` pieces the rest is only counted: "0-2, 5, 7 and 3 more".
std::string ranges_text(const std::set<std::int64_t>& numbers, std::size_t most = SIZE_MAX);

// "rank 5", "ranks 0-4, 6, 7"; a large job's are counted at the end.
std::string ranks_text(const std::set<std::int64_t>& ranks);

}  // namespace trapline
