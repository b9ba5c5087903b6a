// What the catalogue knows must pass the reader's prefilter, or it is never seen.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catalogue/asserts.hpp"
#include "catalogue/patterns.hpp"
#include "catalogue/wordings.hpp"
#include "log/read/scan.hpp"

namespace trapline {
namespace {

bool passes(std::string_view sample) {
  std::vector<Hit> hits;
  scan_block("step 1\n" + std::string(sample) + "\n", hits);
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

TEST(Prefilter, LetsEveryPatternAndNumberThrough) {
  for (const PatternRow& row : pattern_rows()) {
    if (row.wording.id == "any.glog") continue;  // the window finds it by itself
    EXPECT_TRUE(passes(row.wording.sample)) << row.wording.id << ": " << row.wording.sample;
  }
  for (const NumberForm& form : number_forms()) {
    // A trace of NCCL's calls stands below the warning that it is about, and comes with it.
    if (form.sample.find("NCCL INFO") != std::string_view::npos) continue;
    EXPECT_TRUE(passes(form.sample)) << form.sample;
  }
}

}  // namespace
}  // namespace trapline
