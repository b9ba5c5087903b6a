#include "supervise/decide.hpp"

#include <gtest/gtest.h>

namespace trapline::supervise {
namespace {

double half() { return 0.5; }

Finding finding(Cause cause, const std::string& op = "cross_entropy", std::int64_t line = 31) {
  Finding out;
  out.cause = cause;
  out.op = op;
  out.origin = Frame{"train.py", line, "main", "", true};
  return out;
}

Ending failed(std::optional<Finding> root, double lived = 1) {
  Ending out;
  out.exit_code = 1;
  out.root = std::move(root);
  out.lived = lived;
  return out;
}

Policy service() {
  Policy policy;
  policy.is_service = true;
  return policy;
}

TEST(Decide, EveryCauseHasADecisionThatIsNotToFinish) {
  for (const CauseInfo& cause : all_causes()) {
    Judge judge({}, half);
    const Decision decision = judge.decide(failed(finding(cause.cause)), 0);
    EXPECT_NE(decision.action, Action::kFinish) << cause.code;
    EXPECT_NE(decision.reason.find(cause.code), std::string::npos) << decision.reason;
  }
}

TEST(Decide, AGoodEndAndAWishAreTheEnd) {
  Judge judge({}, half);
  Ending well;
  EXPECT_EQ(judge.decide(well, 0).action, Action::kFinish);
  EXPECT_EQ(judge.decide(well, 0).exit_code, 0);
  Ending asked = failed(finding(Cause::kLabelOutOfRange));
  asked.by = EndedBy::kRequest;
  asked.exit_code = 143;
  EXPECT_EQ(judge.decide(asked, 0).action, Action::kFinish);
  EXPECT_EQ(judge.decide(asked, 0).exit_code, 143);
}

TEST(Decide, AHeadThatIsTooSmallStops) {
  Judge judge({}, half);
  const Decision decision = judge.decide(failed(finding(Cause::kNumClassesMismatch)), 0);
  EXPECT_EQ(decision.action, Action::kStop);
  EXPECT_EQ(decision.exit_code, kExitComesBack);
  EXPECT_EQ(decision.reason, "TL102 comes back until the model's head and the classes fit");
}

TEST(Decide, ALostPeerIsTriedAgainUntilTheBudgetIsSpent) {
  Policy policy;
  policy.restarts = 2;
  Judge judge(policy, half);
  const Ending ending = failed(finding(Cause::kPeerFailure));
  EXPECT_EQ(judge.decide(ending, 0).action, Action::kRetry);
  EXPECT_EQ(judge.decide(ending, 10).action, Action::kRetry);
  const Decision last = judge.decide(ending, 20);
  EXPECT_EQ(last.action, Action::kStop);
  EXPECT_EQ(last.exit_code, kExitTransient);
  EXPECT_EQ(last.reason, "TL405 is another rank's; 2 restarts in 600 s are enough");
}

TEST(Decide, TheWindowMovesOn) {
  Policy policy;
  policy.restarts = 1;
  policy.window = 100;
  Judge judge(policy, half);
  const Ending ending = failed(std::nullopt);
  EXPECT_EQ(judge.decide(ending, 0).action, Action::kRetry);
  EXPECT_EQ(judge.decide(ending, 101).action, Action::kRetry);
  const Decision last = judge.decide(ending, 150);
  EXPECT_EQ(last.action, Action::kStop);
  EXPECT_EQ(last.exit_code, kExitCrashLoop);
  EXPECT_EQ(last.reason, "it exited with 1, and nothing tells why; 1 restart in 100 s is enough");
}

TEST(Decide, DelaysDoubleWithJitterAndHaveAnEnd) {
  Policy policy;
  policy.delay = 1;
  policy.max_delay = 6;
  policy.restarts = 100;
  Judge judge(policy, half);
  std::vector<double> delays;
  for (int i = 0; i < 5; ++i) delays.push_back(judge.decide(failed(std::nullopt), i).delay);
  EXPECT_EQ(delays, (std::vector<double>{0.75, 1.5, 3, 4.5, 4.5}));
  EXPECT_EQ(judge.decide(failed(std::nullopt, 1000), 2000).delay, 0.75) << "a good while begins anew";
}

TEST(Decide, TheSameUnclearFaultTwiceStopsAJobAndNotAService) {
  const Ending ending = failed(finding(Cause::kIllegalMemoryAccess, "matmul"));
  Judge job({}, half);
  EXPECT_EQ(job.decide(ending, 0).action, Action::kRetry);
  const Decision second = job.decide(ending, 1);
  EXPECT_EQ(second.action, Action::kStop);
  EXPECT_EQ(second.exit_code, kExitComesBack);
  Judge other({}, half);
  EXPECT_EQ(other.decide(ending, 0).action, Action::kRetry);
  EXPECT_EQ(other.decide(failed(finding(Cause::kIllegalMemoryAccess, "matmul", 99)), 1).action,
            Action::kRetry)
      << "another line is another fault";
  Judge serving(service(), half);
  EXPECT_EQ(serving.decide(ending, 0).action, Action::kRetry);
  EXPECT_EQ(serving.decide(ending, 1).action, Action::kRetry);
}

TEST(Decide, SamplesAreSetAsideThreeTimesAndNoMore) {
  Judge judge({}, half);
  Ending ending = failed(finding(Cause::kLabelOutOfRange));
  ending.samples = 2;
  const Decision first = judge.decide(ending, 0);
  EXPECT_EQ(first.action, Action::kQuarantine);
  EXPECT_EQ(first.reason, "TL101 comes back with the same label; 2 samples are set aside");
  EXPECT_EQ(first.delay, 0);
  EXPECT_EQ(judge.decide(ending, 1).action, Action::kQuarantine);
  EXPECT_EQ(judge.decide(ending, 2).action, Action::kQuarantine);
  const Decision fourth = judge.decide(ending, 3);
  EXPECT_EQ(fourth.action, Action::kStop);
  EXPECT_EQ(fourth.exit_code, kExitComesBack);
}

TEST(Decide, ARequestIsSetAsideOnce) {
  Judge judge(service(), half);
  Ending ending = failed(finding(Cause::kEmbeddingIndexOutOfRange));
  ending.requests = {"ab12"};
  EXPECT_EQ(judge.decide(ending, 0).action, Action::kQuarantine);
  EXPECT_EQ(judge.decide(ending, 1).action, Action::kRetry)
      << "it is refused by now: something else is wrong";
}

TEST(Decide, AnUnknownAssertionSetsItsRequestAsideAndElseTriesAgain) {
  Judge judge(service(), half);
  Ending ending = failed(finding(Cause::kInsufficientEvidence));
  ending.requests = {"ab12"};
  const Decision first = judge.decide(ending, 0);
  EXPECT_EQ(first.action, Action::kQuarantine);
  EXPECT_EQ(first.reason,
            "TL901 mostly comes back with the same input; the request that was being worked on is refused "
            "from now on");
  Judge job({}, half);
  EXPECT_EQ(job.decide(failed(finding(Cause::kInsufficientEvidence)), 0).action, Action::kRetry);
  EXPECT_EQ(job.decide(failed(finding(Cause::kInsufficientEvidence)), 1).action, Action::kStop);
  Judge memory(service(), half);
  Ending full = failed(finding(Cause::kOutOfMemory));
  full.requests = {"ab12"};
  EXPECT_EQ(memory.decide(full, 0).action, Action::kRetry) << "any request may have been the last drop";
}

TEST(Decide, WithoutASampleAJobStopsAndAServiceGoesOn) {
  const Ending ending = failed(finding(Cause::kLabelOutOfRange));
  Judge job({}, half);
  EXPECT_EQ(job.decide(ending, 0).action, Action::kStop);
  Judge serving(service(), half);
  EXPECT_EQ(serving.decide(ending, 0).action, Action::kRetry);
}

TEST(Decide, APolicyFileHasTheLastWord) {
  Policy policy;
  policy.decisions = {{Cause::kPeerFailure, Action::kStop},
                      {Cause::kNumClassesMismatch, Action::kRetry},
                      {Cause::kLabelOutOfRange, Action::kQuarantine}};
  Judge judge(policy, half);
  EXPECT_EQ(judge.decide(failed(finding(Cause::kPeerFailure)), 0).action, Action::kStop);
  EXPECT_EQ(judge.decide(failed(finding(Cause::kNumClassesMismatch)), 0).action, Action::kRetry);
  const Decision unknown = judge.decide(failed(finding(Cause::kLabelOutOfRange)), 0);
  EXPECT_EQ(unknown.action, Action::kStop) << "what is not known cannot be set aside";
  EXPECT_EQ(unknown.reason, "the policy says to set the input of TL101 aside, and it is not known");
}

TEST(Decide, WhatRuinsAContext) {
  EXPECT_TRUE(ruins_context(finding(Cause::kIllegalMemoryAccess)));
  EXPECT_TRUE(ruins_context(finding(Cause::kInsufficientEvidence)));
  EXPECT_FALSE(ruins_context(finding(Cause::kOutOfMemory)));
  EXPECT_FALSE(ruins_context(finding(Cause::kShapeMismatch)));
  EXPECT_FALSE(ruins_context(finding(Cause::kNotCuda)));
  Finding label = finding(Cause::kLabelOutOfRange);
  EXPECT_FALSE(ruins_context(label));
  label.device_assert = true;
  EXPECT_TRUE(ruins_context(label));
  label.contained = true;
  EXPECT_FALSE(ruins_context(label));
}

}  // namespace
}  // namespace trapline::supervise
