#include "core/cause.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace trapline {
namespace {

constexpr auto kCauses = std::to_array<CauseInfo>({
#define TRAPLINE_CAUSE(id, code, slug, title) {Cause::id, code, slug, title},
#include "core/causes.def"
#undef TRAPLINE_CAUSE
});

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::span<const CauseInfo> all_causes() { return kCauses; }

const CauseInfo& info(Cause cause) { return kCauses[static_cast<std::size_t>(cause)]; }

std::optional<Cause> find_cause(std::string_view code_or_slug) {
  for (const CauseInfo& row : kCauses) {
    if (equal_ignoring_case(row.code, code_or_slug) || row.slug == code_or_slug) return row.cause;
  }
  return std::nullopt;
}

}  // namespace trapline
