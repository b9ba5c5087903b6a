#include "core/ranges.hpp"

#include <iterator>

namespace trapline {

std::string ranges_text(const std::set<std::int64_t>& numbers, std::size_t most) {
  std::string out;
  std::size_t pieces = 0;
  const auto add = [&](const std::string& piece) {
    out += (out.empty() ? "" : ", ") + piece;
    ++pieces;
  };
  for (auto it = numbers.begin(); it != numbers.end();) {
    if (pieces >= most) return out + " and " + std::to_string(std::distance(it, numbers.end())) + " more";
    const auto first = it;
    std::int64_t last = *it;
    for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
    if (last - *first < 2) it = std::next(first);  // two neighbours read better apart
    add(it == std::next(first) ? std::to_string(*first)
                               : std::to_string(*first) + "-" + std::to_string(last));
  }
  return out;
}

std::string ranks_text(const std::set<std::int64_t>& ranks) {
  constexpr std::size_t kMaxPieces = 4;
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranges_text(ranks, kMaxPieces);
}

}  // namespace trapline
