// Which contracts stand before a device-side assertion; the join of the contracts table and the catalogue.
#pragma once

#include <span>
#include <string_view>

namespace trapline {

// One row of coverage.def, which says what its members mean.
struct CoverageRow {
  std::string_view file, op, argument, condition;
  std::string_view contracts;  // ids, with a space between them; empty: not guarded
  std::string_view kind;       // "guarded", "user", "host", ...
  std::string_view reason;
};

struct SilentRow {
  std::string_view what, contracts, kind, reason;
};

std::span<const CoverageRow> coverage_rows();
std::span<const SilentRow> silent_rows();

// The row for an assertion of the catalogue; null when there is none, or when two say equally much.
const CoverageRow* find_coverage(std::string_view file, std::string_view op, std::string_view argument,
                                 std::string_view condition);

}  // namespace trapline
