// docs/contracts.md is generated from the table: this test writes it again and compares.
// TRAPLINE_UPDATE_DOCS=1 test_contracts --gtest_filter='Docs.*' replaces the file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "contracts/contract.hpp"

namespace trapline {
namespace {

std::string bound_text(const Contract& row) {
  switch (row.bound) {
    case Bound::kNone:
      return "";
    case Bound::kSizeOfDim:
      return row.dim_arg.empty() ? fmt::format("`{}.size(0)`", row.bound_arg)
                                 : fmt::format("`{}.size({})`", row.bound_arg, row.dim_arg);
    case Bound::kClasses:
      return fmt::format("the classes of `{}`", row.bound_arg);
    case Bound::kLastDim:
      return fmt::format("`{}.size(-1)`", row.bound_arg);
    case Bound::kNumel:
      return fmt::format("`{}.numel()`", row.bound_arg);
    case Bound::kInteger:
      return fmt::format("`{}`", row.bound_arg);
    case Bound::kProduct:
      return fmt::format("the product of `{}`", row.bound_arg);
    case Bound::kMatrixRows:
      return fmt::format("`{}.size(-2)`", row.bound_arg);
    case Bound::kSpatial:
      return fmt::format("the elements of a plane of `{}`", row.bound_arg);
    case Bound::kGrouped:
      return fmt::format("the dimension of `{}` and `{}` that is cut", row.bound_arg, row.also_arg);
  }
  return "?";
}

std::string rule_text(const Contract& row) {
  const std::string bound = bound_text(row);
  switch (row.predicate) {
    case Predicate::kIndex:
      return fmt::format("0 to {} - 1", bound) + (row.also_arg.empty() || row.bound == Bound::kSpatial
                                                      ? ""
                                                      : fmt::format(", or `{}`", row.also_arg));
    case Predicate::kWrappedIndex:
      return fmt::format("-n to n - 1, n = {}", bound);
    case Predicate::kIndexList:
      return "-n to n - 1, n = size of the indexed dimension; masks are left alone";
    case Predicate::kUnitInterval:
      return "0 to 1, not NaN";
    case Predicate::kNonNegative:
      return "at least 0, not NaN";
    case Predicate::kProbabilityRows:
      return "each row finite, at least 0, sum above 0";
    case Predicate::kOffsets:
      return fmt::format("starts at 0, ascending, at most {}", bound);
    case Predicate::kFiniteToInteger:
      return "finite (no error by itself: remembered as the origin of a later one)";
    case Predicate::kPaddedIndex:
      return fmt::format("0 to {} - 1 in the first `{}` of each row", bound, row.also_arg);
    case Predicate::kEndedIndex:
      return fmt::format("0 to {} - 1 up to the first -1 of each row", bound);
    case Predicate::kPivots:
      return fmt::format("1 to {}", bound);
    case Predicate::kEnds:
      return fmt::format("0 to {}, ascending in each row", bound);
    case Predicate::kCounts:
      return fmt::format("at least 0; the sum is {} where that is given", bound);
    case Predicate::kLengths:
      return fmt::format("at least 0; the sum of each row is at most {}", bound);
    case Predicate::kCompressed:
      return fmt::format("each row starts at 0, ascends by at most `{}` and ends at {}", row.also_arg, bound);
    case Predicate::kMaskCount:
      return fmt::format("a mask that, broadcast with `{}`, takes at most {} elements", row.also_arg, bound);
  }
  return "?";
}

// Base names that share a line of the table are listed together.
std::string render() {
  std::string text =
      "# What is checked\n\n"
      "Generated from `src/contracts/contracts.cpp` by `tests/contracts/test_docs.cpp`. Every overload of an "
      "operation\n(functional, in-place, `out=`) that the running torch has is hooked. \"On CUDA\" says what "
      "an "
      "unguarded violation is\nthere, read from PyTorch's sources, not run. In device memory, rows of more "
      "than "
      "4096 counts, lengths or ends are\nlooked at element by element: not their sums and their order.\n\n"
      "| you call | argument | every element must be | cause | on CUDA | ATen operations |\n"
      "|---|---|---|---|---|---|\n";
  std::vector<std::string> order;
  std::map<std::string, std::string> operations;
  for (const Contract& row : contracts()) {
    const CauseInfo& cause = info(row.cause);
    const std::string line = fmt::format("| `{}` | {} | {} | {} {} | {} |", row.public_op,
                                         row.public_argument, rule_text(row), cause.code, cause.slug,
                                         row.device_assert ? "device-side assert" : "silent or a host error");
    std::string& names = operations[line];
    if (names.empty()) order.push_back(line);
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", row.op);
  }
  for (const std::string& line : order) text += fmt::format("{} {} |\n", line, operations[line]);
  return text;
}

TEST(Docs, TheTableOfContractsIsUpToDate) {
  const std::filesystem::path path = std::filesystem::path(TRAPLINE_SOURCE_DIR) / "docs" / "contracts.md";
  const std::string wanted = render();
  if (std::getenv("TRAPLINE_UPDATE_DOCS") != nullptr) std::ofstream(path) << wanted;
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(text, wanted) << "run again with TRAPLINE_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace trapline
