// docs/contracts.md is generated from the table: this test writes it again and compares.
// TRAPLINE_UPDATE_DOCS=1 test_diagnose --gtest_filter='ContractsPage.*' replaces the file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/contract.hpp"
#include "diagnose/violation/rule_words.hpp"

namespace trapline::diagnose {
namespace {

std::string_view in_its_place(Heal heal) {
  switch (heal) {
    case Heal::kNone:
      return "nothing: the check is waited for";
    case Heal::kElement:
      return "a value in range";
    case Heal::kRow:
      return "a row of ones";
    case Heal::kAll:
      return "zeros, for all";
    case Heal::kReport:
      return "itself: it does no harm";
  }
  return "?";
}

// Operations that share a line of the table are listed together.
std::string render() {
  std::string text =
      "# What is checked\n\n"
      "Generated from `src/contracts/contracts.cpp` by `tests/diagnose/test_contracts_page.cpp`. Every "
      "overload "
      "of an\noperation (functional, in-place, `out=`) that the running torch has is hooked. \"On CUDA\" "
      "says "
      "what an unguarded\nviolation is there, read from PyTorch's sources, not run. \"In its place\" is what "
      "the "
      "operation gets instead of a bad\nelement where it goes on: on a device, and with `--on-fault skip`. "
      "In "
      "device memory, rows of more than 4096 counts,\nlengths or ends are looked at element by element: not "
      "their sums and their order.\n\n"
      "| you call | argument | every element must be | cause | on CUDA | in its place | operators |\n"
      "|---|---|---|---|---|---|---|\n";
  std::vector<std::string> order;
  std::map<std::string, std::string> operations;
  for (const Contract& row : contracts()) {
    const CauseInfo& cause = info(row.cause);
    const std::string line = fmt::format(
        "| `{}` | {} | {}{} | {} {} | {} | {} |", row.public_op, row.public_argument, rule_words(row),
        row.remember ? " (no error by itself: remembered as the origin of a later one)" : "", cause.code,
        cause.slug, row.device_assert ? "device-side assert" : "silent or a host error",
        in_its_place(row.heal));
    std::string& names = operations[line];
    if (names.empty()) order.push_back(line);
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", row.op);
  }
  for (const std::string& line : order) text += fmt::format("{} {} |\n", line, operations[line]);
  return text;
}

TEST(ContractsPage, IsUpToDate) {
  const std::filesystem::path path = std::filesystem::path(TRAPLINE_SOURCE_DIR) / "docs" / "contracts.md";
  const std::string wanted = render();
  if (std::getenv("TRAPLINE_UPDATE_DOCS") != nullptr) std::ofstream(path) << wanted;
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(text, wanted) << "run again with TRAPLINE_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace trapline::diagnose
