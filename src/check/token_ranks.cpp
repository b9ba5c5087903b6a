#include "check/token_ranks.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "jsonio/access.hpp"

namespace trapline::check {
namespace {

constexpr std::int64_t kMaxRank = std::numeric_limits<std::int32_t>::max();

bool is_base64(std::string_view text) {
  return !text.empty() && text.size() % 4 == 0 && std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  });
}

}  // namespace

std::optional<std::int64_t> count_ranks(std::span<const std::byte> bytes) {
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::int64_t size = 0;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::size_t space = line.find(' ');
    if (space == line.npos || !is_base64(line.substr(0, space))) return std::nullopt;
    std::int64_t rank = 0;
    const char* last = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data() + space + 1, last, rank);
    if (error != std::errc{} || stop != last || rank < 0 || rank > kMaxRank) return std::nullopt;
    size = std::max(size, rank + 1);
  }
  return size > 0 ? std::optional(size) : std::nullopt;
}

// The file may hold more tokens than are used: default_vocab_size counts the used ones and the special ones.
std::optional<std::int64_t> tekken_size(const nlohmann::json& file) {
  const auto config = file.find("config");
  const auto vocabulary = file.find("vocab");
  if (config == file.end() || vocabulary == file.end() || !vocabulary->is_array()) return std::nullopt;
  const auto size = jsonio::integer(*config, "default_vocab_size");
  if (size && *size > 0 && *size <= kMaxRank) return size;
  const auto special = jsonio::integer(*config, "default_num_special_tokens");
  if (!special || *special < 0 || *special > kMaxRank) return std::nullopt;
  return static_cast<std::int64_t>(vocabulary->size()) + *special;
}

}  // namespace trapline::check
