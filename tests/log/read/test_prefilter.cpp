// What the catalogue knows must pass the reader's prefilter, or it is never seen.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catalogue/asserts.hpp"
#include "catalogue/wordings.hpp"
#include "log/read/scan.hpp"

namespace trapline {
namespace {

bool passes(std::string_view sample) {
  std::vector<Hit> hits;
  scan_block(std::string(sample) + "\n", hits);
  return !hits.empty();
}

TEST(Prefilter, LetsEveryAssertionThrough) {
  for (const AssertRow& row : assert_rows()) EXPECT_TRUE(passes(row.sample)) << row.sample;
}

TEST(Prefilter, LetsEveryMessageThrough) {
  for (const WordingRow& row : wording_rows()) {
    if (row.kind == WordingKind::kHint || row.kind == WordingKind::kContext) continue;  // stand beside others
    EXPECT_TRUE(passes(row.sample)) << row.id << ": " << row.sample;
  }
}

}  // namespace
}  // namespace trapline
