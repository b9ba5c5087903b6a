// Every assertion of the catalogue that a user can reach is mapped to contracts or to a written reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catalogue/asserts.hpp"
#include "contracts/contract.hpp"
#include "contracts/coverage.hpp"

namespace trapline {
namespace {

const std::set<std::string_view> kClasses = {"guarded", "user", "internal", "host", "machine",
                                             "compile", "gone", "project",  "open"};

void expect_row(std::string_view name, std::string_view ids, std::string_view kind, std::string_view reason) {
  EXPECT_TRUE(kClasses.contains(kind)) << name << ": " << kind;
  EXPECT_EQ(ids.empty(), kind != "guarded") << name;
  EXPECT_FALSE(ids.empty() && reason.empty()) << name << " is left out without a word";
  std::istringstream words{std::string(ids)};
  for (std::string id; words >> id;) EXPECT_NE(find_contract(id), nullptr) << name << ": no contract " << id;
}

// PyTorch's part of the catalogue; of other projects nothing is hooked.
struct Site {
  std::string_view file, condition, op, argument;
  Cause cause;
};

std::vector<Site> sites() {
  using enum Cause;
  using enum Reach;
#define TRAPLINE_ASSERT(file, lines, versions, kernel, condition, op, argument, valid, cause, certainty, \
                        reach, ...)                                                                      \
  {{file, condition, op, argument, cause}, reach},
  const std::pair<Site, Reach> all[] = {
#include "catalogue/asserts_torch.def"
  };
#undef TRAPLINE_ASSERT
  std::vector<Site> reachable;
  for (const auto& [site, reach] : all) {
    if (reach != kInternal) reachable.push_back(site);
  }
  return reachable;
}

TEST(Coverage, EveryAssertionThatAUserCanReachIsMapped) {
  std::set<const CoverageRow*> used;
  for (const Site& site : sites()) {
    const CoverageRow* row = find_coverage(site.file, site.op, site.argument, site.condition);
    EXPECT_NE(row, nullptr) << site.file << " | " << site.op << " | " << site.argument << " | "
                            << site.condition << ": no row of coverage.def, or two that say equally much";
    used.insert(row);
  }
  EXPECT_GT(sites().size(), 230U);
  for (const CoverageRow& row : coverage_rows()) {
    EXPECT_TRUE(used.contains(&row)) << row.file << " | " << row.op << " | " << row.argument << " | "
                                     << row.condition << ": no assertion has it";
  }
}

TEST(Coverage, EveryRowNamesContractsOrAReason) {
  for (const CoverageRow& row : coverage_rows()) {
    expect_row(std::string(row.file) + " " + std::string(row.op), row.contracts, row.kind, row.reason);
  }
  for (const SilentRow& row : silent_rows()) expect_row(row.what, row.contracts, row.kind, row.reason);
}

TEST(Coverage, EveryContractStandsBeforeSomething) {
  std::set<std::string> named;
  const auto add = [&](std::string_view ids) {
    std::istringstream words{std::string(ids)};
    for (std::string id; words >> id;) named.insert(id);
  };
  for (const CoverageRow& row : coverage_rows()) add(row.contracts);
  for (const SilentRow& row : silent_rows()) add(row.contracts);
  for (const Contract& contract : contracts())
    EXPECT_TRUE(named.contains(std::string(contract.id))) << contract.id;
}

// The cause that `explain` reads from the line is the one that the guard gives.
TEST(Coverage, TheCausesAgree) {
  for (const Site& site : sites()) {
    const CoverageRow* row = find_coverage(site.file, site.op, site.argument, site.condition);
    if (row == nullptr || row->kind != "guarded") continue;
    std::istringstream words{std::string(row->contracts)};
    std::set<Cause> causes = {Cause::kInsufficientEvidence};  // a line that says less than the guard
    for (std::string id; words >> id;) {
      const Contract& contract = *find_contract(id);
      causes.insert(contract.cause);
      // A negative count is one thing, a wrong sum another: the words decide.
      if (contract.predicate == Predicate::kCounts) causes.insert(Cause::kShapeMismatch);
    }
    EXPECT_TRUE(causes.contains(site.cause)) << site.file << " " << site.op << " " << site.condition;
  }
}

}  // namespace
}  // namespace trapline
