// The causes Trapline can name, and their stable codes and slugs. The rows are in causes.def.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace trapline {

enum class Cause : std::uint8_t {
#define TRAPLINE_CAUSE(id, code, slug, title) id,
#include "core/causes.def"
#undef TRAPLINE_CAUSE
};

struct CauseInfo {
  Cause cause;
  std::string_view code;   // "TL101"; stable
  std::string_view slug;   // "label_out_of_range"; the `cause` of finding.schema.json
  std::string_view title;  // a few words for headlines
};

// All causes, in the order of the enumeration.
std::span<const CauseInfo> all_causes();

const CauseInfo& info(Cause cause);

// Finds a cause by code ("TL101", any case) or slug; nullopt when there is none.
std::optional<Cause> find_cause(std::string_view code_or_slug);

}  // namespace trapline
