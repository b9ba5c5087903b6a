#include "contracts/coverage.hpp"

namespace trapline {
namespace {

#define TRAPLINE_SILENT(what, contracts, kind, reason)
#define TRAPLINE_COVERAGE(file, op, argument, condition, contracts, kind, reason) \
  CoverageRow{file, op, argument, condition, contracts, kind, reason},
constexpr CoverageRow kRows[] = {
#include "contracts/coverage.def"
};
#undef TRAPLINE_COVERAGE
#undef TRAPLINE_SILENT

#define TRAPLINE_COVERAGE(file, op, argument, condition, contracts, kind, reason)
#define TRAPLINE_SILENT(what, contracts, kind, reason) SilentRow{what, contracts, kind, reason},
constexpr SilentRow kSilent[] = {
#include "contracts/coverage.def"
};
#undef TRAPLINE_COVERAGE
#undef TRAPLINE_SILENT

bool fits(std::string_view wanted, std::string_view name) { return wanted == "*" || wanted == name; }

}  // namespace

std::span<const CoverageRow> coverage_rows() { return kRows; }

std::span<const SilentRow> silent_rows() { return kSilent; }

const CoverageRow* find_coverage(std::string_view file, std::string_view op, std::string_view argument,
                                 std::string_view condition) {
  const CoverageRow* best = nullptr;
  int best_says = -1;
  bool tied = false;
  for (const CoverageRow& row : kRows) {
    if (!row.file.empty() && row.file != file) continue;
    if (!fits(row.op, op) || !fits(row.argument, argument)) continue;
    if (condition.find(row.condition) == std::string_view::npos) continue;
    const int says =
        (row.file.empty() ? 0 : 4) + (row.condition.empty() ? 0 : 2) + (row.argument == "*" ? 0 : 1);
    tied = says == best_says || (tied && says < best_says);
    if (says <= best_says) continue;
    best = &row;
    best_says = says;
  }
  return tied ? nullptr : best;
}

}  // namespace trapline
