// Findings and reports as JSON: docs/finding.schema.json.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/finding.hpp"
#include "core/result.hpp"

namespace trapline {

inline constexpr int kSchemaVersion = 1;

// Strings that are not UTF-8 get U+FFFD for each invalid byte, so that dump() cannot fail. Values are written
// as jsonio/scalar.hpp says. Empty optional fields are left out.
nlohmann::json to_json(const Finding& finding);
nlohmann::json to_json(const Report& report);
// What every report has around its findings and notes, which are lists.
nlohmann::json envelope(Command command, Verdict verdict, nlohmann::json findings, nlohmann::json notes);

// What a reader accepts. Files come from other processes: they may be truncated, hostile, huge or deep.
struct ReadLimits {
  std::size_t bytes = std::size_t{16} << 20U;
  std::size_t depth = 32;
  std::size_t items = 4096;                  // of any one list; what is beyond is dropped
  std::size_t text = std::size_t{1} << 16U;  // bytes of any one string; what is beyond is cut
};

// Never throws. Unknown fields are ignored (a newer minor version may add some); a missing required field, a
// field of the wrong type, an unknown cause, or a newer schema is an error that names it.
Result<Report> parse_report(std::string_view text, const ReadLimits& limits = {});
Result<Finding> finding_from_json(const nlohmann::json& json, const ReadLimits& limits = {});

}  // namespace trapline
