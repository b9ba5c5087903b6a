// Callers inside the process fill structures: no JSON on the way.
#include <gtest/gtest.h>

#include "diagnose/diagnose.hpp"

namespace trapline::diagnose {
namespace {

TEST(TypedFacts, OfAViolation) {
  Violation facts;
  facts.contract = find_contract("check_labels.labels");
  ASSERT_NE(facts.contract, nullptr);
  facts.source = "train.csv";
  facts.column = "label";
  facts.index = {3};
  facts.scan.bad = 1;
  facts.scan.total = 32;
  facts.scan.value = std::int64_t{195};
  facts.scan.hi = 195;
  facts.scan.reason = Reason::kAbove;
  const Finding finding = finding_of(facts);
  EXPECT_EQ(finding.cause, Cause::kNumClassesMismatch);
  EXPECT_TRUE(finding.summary.starts_with("train.csv: label[3] is 195")) << finding.summary;
  EXPECT_FALSE(finding.fix.empty());
  const auto same = finding_of(Facts(facts));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->summary, finding.summary);
}

TEST(TypedFacts, OfAHostError) {
  HostError facts;
  facts.exception = "RuntimeError";
  facts.message = "mat1 and mat2 shapes cannot be multiplied (32x400 and 256x10)";
  const auto finding = finding_of(Facts(facts));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->cause, Cause::kShapeMismatch);
  facts.exception = "KeyError";
  EXPECT_FALSE(finding_of(Facts(facts)));
}

TEST(TypedFacts, OfAWatchedRun) {
  const Watch facts{{true, {"loss", "", "", 7, "step"}, std::nullopt}, std::nullopt};
  const auto finding = finding_of(Facts(facts));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->summary,
            "the first NaN of this run was in step 7, in the loss, or in what it was given beside the "
            "model's output");
}

}  // namespace
}  // namespace trapline::diagnose
