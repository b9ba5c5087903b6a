// What `run --watch nan` saw, in words.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "watch_facts.hpp"

namespace trapline::diagnose {
namespace {

TEST(Watch, NamesStepAndLayer) {
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", kOutput}, {"process", {{"rank", 3}}}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->cause, Cause::kNonFiniteValue);
  EXPECT_EQ(finding->summary, "the first NaN of this run was in step 12, in the output of `fc1` (Linear)");
  EXPECT_EQ(finding->fix.front(), "print the input of `fc1` in step 12");
  EXPECT_EQ(finding->layer->name, "fc1");
  EXPECT_EQ(finding->process->rank, 3);
  EXPECT_EQ(finding->device_assert, false);
}

TEST(Watch, CallsOnlyOneTheFirstWhereTheRunGoesOn) {
  json watch = kOutput;
  watch["later"] = true;
  const auto placed = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->summary, "a later NaN of this run was in step 12, in the output of `fc1` (Linear)");
  watch.update({{"kind", "loss"}, {"looked", false}, {"what", "inf"}, {"name", ""}});
  const auto unplaced = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_TRUE(unplaced);
  EXPECT_EQ(unplaced->summary, "a later Inf that was noticed was in step 12; its place was not found");
}

TEST(Watch, TellsOperationSampleAndGrowth) {
  json watch = kOutput;
  watch["op"] = "log";
  watch["sample"] = {{"dataset_index", 5}};
  watch["growth"] = {{"of", "gradient norm"}, {"low", 0.8}, {"high", 30000.0}, {"steps", 20}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->summary,
            "the first NaN of this run was in step 12, in the output of `fc1` (Linear), by `log`");
  EXPECT_EQ(finding->sample->dataset_index, 5);
  EXPECT_EQ(finding->evidence.back().text, "the gradient norm grew from 0.8 to 3e+04 in the 20 steps before");
}

TEST(Watch, TheSampleIsLookedAt) {
  json watch = kOutput;
  watch["sample"] = {{"dataset_index", 5}, {"batch", 1}, {"row", 1}, {"loader", "loader"}};
  for (const char* kind : {"output", "gradient", "loss"}) {
    watch["kind"] = kind;
    const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->fix.back(), "look at sample 5: print(loader.dataset[5])") << kind;
  }
}

TEST(Watch, TheOptimizersState) {
  json watch = kOutput;
  watch.update(
      {{"kind", "state"}, {"what", "inf"}, {"state", "exp_avg_sq"}, {"name", "net.0.weight"}, {"type", ""}});
  watch["sample"] = {{"dataset_index", 163}, {"loader", "loader"}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->summary,
            "the first Inf of this run was in step 12, in the optimizer's `exp_avg_sq` of `net.0.weight`");
  EXPECT_NE(finding->fix.front().find("a fill value in the data (1e20, 9.97e36) or numbers that grow"),
            std::string::npos);
  EXPECT_EQ(finding->fix.back(), "look at sample 163: print(loader.dataset[163])");
  EXPECT_EQ(finding->certainty, Certainty::kProven);
}

TEST(Watch, AVarianceBelowZero) {
  json watch = kOutput;
  watch.update(
      {{"op", "native_batch_norm"}, {"name", "bn1"}, {"type", "BatchNorm2d"}, {"finite_before", true}});
  EXPECT_NE(fix_of(watch).front().find("look for one below 0 (a momentum outside [0, 1]"), std::string::npos);
}

TEST(Watch, ATargetThatHasNoPath) {
  json watch = kOutput;
  watch.update({{"kind", "loss"}, {"what", "inf"}, {"name", ""}, {"type", ""}, {"op", "_ctc_loss"}});
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->fix.front().find("zero_infinity=True"), std::string::npos) << finding->fix.front();
}

TEST(Watch, AdvisesOnlyWhatFitsThePlace) {
  json watch = kOutput;
  watch["op"] = "log";
  EXPECT_EQ(fix_of(watch).size(), 1);
  EXPECT_TRUE(advises(kOutput, "check the data"));
}

TEST(Watch, AdvisesOnlyWhatWasSeen) {
  json loss = {{"what", "inf"}, {"kind", "loss"}, {"step", 3}, {"unit", "step"}};
  EXPECT_FALSE(advises(loss, "float16"));
  EXPECT_FALSE(advises(loss, "learning rate"));
  EXPECT_TRUE(advises(loss, "check the data"));
  loss["input_finite"] = true;
  EXPECT_FALSE(advises(loss, "check the data"));
  loss["half"] = true;
  EXPECT_TRUE(advises(loss, "float16"));
  loss["growth"] = {{"of", "loss"}, {"low", 1.0}, {"high", 1000.0}, {"steps", 5}};
  EXPECT_TRUE(advises(loss, "learning rate"));
}

TEST(Watch, SaysFiniteOnlyWhereThatWasSeen) {
  json watch = kOutput;
  watch["op"] = "log";
  EXPECT_FALSE(advises(watch, "finite"));
  watch["finite_before"] = true;
  EXPECT_TRUE(advises(watch, "`log` was given finite numbers"));
}

TEST(Watch, AnEpsilonWouldHideWhatIsWrongWithRunningStatistics) {
  json watch = kOutput;
  watch["op"] = "rsqrt";
  watch["finite_before"] = true;
  watch["own"] = true;
  EXPECT_EQ(fix_of(watch).front(),
            "`rsqrt` was given finite numbers, the module's weights and buffers alone: look at how they came "
            "to be (an initialisation, a checkpoint, the steps before); only if they are right: find why 0 "
            "or less goes into it: where only rounding takes it there, clamp it to a small positive number; "
            "elsewhere a clamp hides that");
  watch["op"] = "_weight_norm_interface";
  EXPECT_TRUE(advises(watch, "the module's weights and buffers alone")) << fix_of(watch).front();
}

TEST(Watch, AnUpdateByFiniteGradientsIsTheOptimizers) {
  json watch = {{"what", "nan"}, {"kind", "optimizer"}, {"step", 3}, {"unit", "step"}, {"name", "weight"}};
  EXPECT_FALSE(advises(watch, "were finite"));
  EXPECT_FALSE(advises(watch, "too high"));
  watch["gradients_finite"] = true;
  EXPECT_TRUE(advises(watch, "the gradients of step 3 were finite"));
}

TEST(Watch, SaysThatAPlaceWasNotFound) {
  json watch = {{"what", "nan"}, {"kind", "loss"}, {"step", 38}, {"unit", "step"}, {"looked", false}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->summary, "the first NaN that was noticed was in step 38; its place was not found");
  EXPECT_EQ(finding->certainty, Certainty::kLikely);
  watch["op"] = "div";
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
            "the first NaN of this run was in step 38, in what leads to the loss, by `div`");
}

TEST(Watch, AVarianceOfOneRowWantsMoreRows) {
  const json watch = {{"what", "nan"}, {"kind", "loss"}, {"step", 1}, {"unit", "step"}, {"op", "var"}};
  EXPECT_TRUE(advises(watch, "drop_last"));
  EXPECT_FALSE(advises(watch, "epsilon"));
}

TEST(Watch, AdviceFitsTheOperation) {
  json watch = {{"what", "inf"}, {"kind", "loss"}, {"step", 1}, {"unit", "step"}, {"op", "exp"}};
  EXPECT_TRUE(advises(
      watch,
      "`exp`: it overflowed: where the logarithm of its sum is taken, torch.logsumexp gives that without it; "
      "else find why what goes into it is so large, as a clamp from above hides that"));
  EXPECT_FALSE(advises(watch, "epsilon"));
  watch["op"] = "cummax";
  EXPECT_EQ(fix_of(watch).front(), "look at what goes into `cummax` in step 1");
  watch["kind"] = "output";
  watch["op"] = "acos";
  watch["finite_before"] = true;
  EXPECT_TRUE(advises(watch, "find why a number beyond -1..1 goes into it"));
  EXPECT_FALSE(advises(watch, "epsilon"));
}

TEST(Watch, ARowWithoutAScoreHasNoSoftmax) {
  json watch = kOutput;
  watch["op"] = "_softmax";
  EXPECT_TRUE(advises(watch, "a row of which every score is -inf"));
  watch["op"] = "log";  // of what it was given nothing is known
  EXPECT_FALSE(advises(watch, "clamp"));
}

TEST(Watch, ALikelyDerivativeIsAdvisedAsASeenOne) {
  json watch = {{"what", "nan"},  {"kind", "gradient"}, {"step", 40},
                {"unit", "step"}, {"name", "a.bias"},   {"op", "Gate.backward"}};
  watch["origin"] = {{"file", "a.py"}, {"line", 3}, {"function", "forward"}};
  EXPECT_TRUE(advises(watch, "`Gate.backward` was given finite gradients"));
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kLikely);
}

TEST(Watch, DerivativeOfALossIsNamedByWhatItHadSaved) {
  json watch = {{"what", "nan"},  {"kind", "gradient"}, {"step", 40},
                {"unit", "step"}, {"name", "a.bias"},   {"op", "sqrt"}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_EQ(
      finding->summary,
      "the first NaN of this run was in step 40, in the gradient of `a.bias`, by the derivative of `sqrt`");
  EXPECT_EQ(finding->certainty, Certainty::kLikely);
  EXPECT_TRUE(advises(watch, "the derivative of `sqrt` is not finite at 0"));
  watch["op"] = "Gate.backward";
  EXPECT_TRUE(advises(watch, "look at the divisions and roots of `Gate.backward`"));
  watch.erase("op");
  watch["made_with"] = {"Gate.backward", "mul", "hypot"};
  EXPECT_TRUE(advises(watch, "the one of `Gate.backward` or `hypot` (where both are 0)"));
}

TEST(Watch, DerivativeThatOnlyTheNextLossShowed) {
  const json watch = {
      {"what", "nan"}, {"kind", "optimizer"}, {"step", 40}, {"unit", "step"}, {"op", "linalg.svd"}};
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
            "the first NaN of this run was in step 40, in the gradients, by the derivative of `linalg.svd`");
  EXPECT_TRUE(advises(watch,
                      "the derivative of `linalg.svd` is not finite where two singular values are the same "
                      "or, of a matrix that is not square, one is 0"));
  EXPECT_FALSE(advises(watch, "optimizer"));
}

TEST(Watch, NeitherRateNorDtypeMadeWhatWasGiven) {
  for (const char* kind : {"input", "target", "weights"}) {
    json watch = {{"what", "inf"}, {"kind", kind}, {"step", 2}, {"unit", "step"}, {"half", true}};
    watch["growth"] = {{"of", "loss"}, {"low", 1.0}, {"high", 1000.0}, {"steps", 5}};
    EXPECT_FALSE(advises(watch, "learning rate")) << kind;
    EXPECT_FALSE(advises(watch, "bfloat16")) << kind;
  }
}

TEST(Watch, TargetsAreTheData) {
  const json watch = {{"what", "nan"}, {"kind", "target"}, {"step", 2}, {"unit", "step"}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->summary,
            "the first NaN of this run was in step 2, in the targets or weights that the loss was given");
  EXPECT_EQ(finding->certainty, Certainty::kProven);
  EXPECT_TRUE(advises(watch, "not finite before the loss (targets, weights of samples)"));
}

TEST(Watch, GradientsOfFloat16Overflow) {
  json watch = {{"what", "inf"}, {"kind", "gradient"}, {"step", 1}, {"unit", "step"}, {"name", "fc.bias"}};
  EXPECT_TRUE(advises(watch, "where() around log"));
  watch["half"] = true;
  EXPECT_FALSE(advises(watch, "where() around log"));
}

TEST(Watch, SavedTensorsAndGradientsAreNoProof) {
  const auto certainty = [](const json& watch) {
    return diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty;
  };
  json watch = {{"what", "nan"}, {"kind", "loss"}, {"step", 1}, {"unit", "step"}};
  EXPECT_EQ(certainty(watch), Certainty::kProven);
  watch["op"] = "sqrt";
  EXPECT_EQ(certainty(watch), Certainty::kLikely);
  EXPECT_EQ(certainty({{"kind", "gradient"}, {"step", 1}, {"name", "fc.weight"}}), Certainty::kLikely);
  EXPECT_EQ(certainty(kOutput), Certainty::kProven);
}

TEST(Watch, WeightsThatARunBeganWith) {
  json watch = {{"what", "nan"}, {"kind", "weights"}, {"step", 1}, {"unit", "step"}, {"name", "w"}};
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
            "the first NaN of this run was in step 1, in the weights that the step began with: `w`");
  watch["row"] = 55;
  EXPECT_EQ(
      diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
      "the first NaN of this run was in step 1, in the weights that the step began with: row 55 of `w`");
}

TEST(Watch, WeightsBesideTheTrainedOnesNeedNotHaveMadeTheTarget) {
  json watch = {{"what", "nan"}, {"kind", "weights"}, {"step", 9}, {"unit", "step"}, {"name", "w"}};
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kProven);
  watch["beside"] = true;
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kLikely);
}

TEST(Watch, MinusInfinityThatWasThereFromTheStart) {
  const json watch = {{"what", "inf"},  {"kind", "weights"},     {"step", 8},
                      {"unit", "step"}, {"name", "transitions"}, {"since_start", true}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_EQ(finding->summary,
            "the first Inf loss of this run was in step 8: it is the first to meet the -inf in "
            "`transitions`, which was there before the first step");
  EXPECT_EQ(finding->fix.front(),
            "if the -inf is there on purpose (to forbid something), step 8 holds what it forbids: mend or "
            "leave out that sample; else look at the initialisation or the checkpoint (a logarithm of 0)");
}

TEST(Watch, TargetsThatNoDataHoldMayBeTheProgramsOwn) {
  json watch = {{"what", "nan"}, {"kind", "target"}, {"step", 105}, {"unit", "step"}, {"made", true}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_EQ(finding->certainty, Certainty::kLikely);
  EXPECT_TRUE(finding->summary.starts_with("the first NaN that was noticed was in step 105"));
  EXPECT_NE(finding->fix.front().find("a target network"), std::string::npos);
}

TEST(Watch, ACastThatOverflows) {
  const json watch = {{"what", "inf"},    {"kind", "output"}, {"step", 3},
                      {"unit", "step"},   {"op", "cast"},     {"name", "embed"},
                      {"type", "Linear"}, {"half", true},     {"finite_before", true}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_EQ(
      finding->summary,
      "the first Inf of this run was in step 3, in the output of `embed` (Linear), by a cast to another "
      "type");
  ASSERT_EQ(finding->fix.size(), 1U) << "a scaler changes gradients, not this number";
  EXPECT_NE(finding->fix.front().find("65504"), std::string::npos);
}

TEST(Watch, AScoreOfMinusInfinityStaysThat) {
  json watch = {{"what", "inf"}, {"kind", "loss"}, {"step", 2}, {"unit", "step"}, {"op", "logsoftmax"}};
  const auto help = [&] { return diagnose_watch({{"kind", "watch"}, {"watch", watch}})->fix.front(); };
  EXPECT_NE(help().find("label_smoothing"), std::string::npos) << help();
  watch["what"] = "nan";
  EXPECT_EQ(help().find("label_smoothing"), std::string::npos) << help();
}

// What broken weights have made of an index: when they broke, where and whose sample it was.
TEST(Watch, TellsWhenTheWeightsBroke) {
  json facts = {{"kind", "violation"},
                {"contract", "gather.index"},
                {"scan",
                 {{"bad", 64},
                  {"total", 64},
                  {"first", 0},
                  {"value", -1},
                  {"min", -1},
                  {"max", -1},
                  {"lo", 0},
                  {"hi", 5},
                  {"reason", 1}}},
                {"weights", {{"name", "embed.weight"}, {"bad", 56}, {"total", 58}}},
                {"watch",
                 {{"what", "inf"},
                  {"kind", "loss"},
                  {"step", 28},
                  {"unit", "step"},
                  {"op", "cosh"},
                  {"origin", {{"file", "/job/main.py"}, {"line", 27}}},
                  {"sample", {{"batch", 27}, {"row", 3}, {"dataset_index", 1377}}}}}};
  const auto finding = diagnose_violation(facts);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->fix.front(),
            "in step 28 (main.py:27, of sample 1377): `cosh`: it overflowed: find why what goes into it is "
            "so large; a clamp from above hides that");
  const auto says = [](const auto& told, const char* words) {
    return std::ranges::any_of(told->fix,
                               [&](const auto& line) { return line.find(words) != std::string::npos; });
  };
  EXPECT_FALSE(says(finding, "NaN comes of missing data"));  // which of them it was is known
  facts["watch"]["sample"] = {{"batch", 27}, {"of", 8}};
  EXPECT_TRUE(says(diagnose_violation(facts), "in step 28 (main.py:27, of batch 27)"));
  facts["watch"]["op"] = "";
  EXPECT_TRUE(says(diagnose_violation(facts), "NaN comes of missing data"));
  facts["weights"] = {{"name", ""}, {"bad", 0}, {"total", 58}};
  EXPECT_EQ(diagnose_violation(facts)->fix.front().find("step 28"), std::string::npos);
}

TEST(Watch, HelpsAnErrorOfPyTorchsOwn) {
  const json facts = {
      {"kind", "host_error"},
      {"exception", "ValueError"},
      {"message",
       "Expected parameter logits (Tensor of shape (1, 2)) of distribution Categorical(logits: "
       "torch.Size([1, 2])) to satisfy the constraint IndependentConstraint(Real(), 1), but found invalid "
       "values:\ntensor([[nan, nan]])"},
      {"element", {{"index", {0, 0}}, {"value", "nan"}}},
      {"watch", kOutput}};
  const auto finding = diagnose_host_error(facts);
  ASSERT_TRUE(finding);
  ASSERT_FALSE(finding->evidence.empty());
  EXPECT_EQ(finding->evidence.back().source, "watch");
  EXPECT_EQ(finding->fix.front(), "print the input of `fc1` in step 12");
}

TEST(Watch, CallsOnlyDataWhatABatchHolds) {
  json watch = {{"what", "nan"}, {"kind", "input"}, {"step", 2}, {"unit", "step"}};
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
            "the first NaN of this run was in step 2, in the data");
  watch["type"] = "Head";
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
            "the first NaN of this run was in step 2, in what goes into Head");
}

TEST(Watch, TellsTheInfinityThatCameFirst) {
  json watch = kOutput;
  watch["inf_before"] = {{"kind", "gradient"}, {"step", 11}, {"unit", "step"}, {"name", "fc1.weight"}};
  const auto fact = read_watch({{"watch", watch}});
  ASSERT_TRUE(fact);
  EXPECT_EQ(
      watch_text(*fact),
      "the first NaN of this run was in step 12, in the output of `fc1` (Linear); before it, Inf in step 11, "
      "in the gradient of `fc1.weight`");
  watch["inf_before"] = watch;
  watch["inf_before"]["op"] = "bmm";
  const auto same = read_watch({{"watch", watch}});
  ASSERT_TRUE(same);
  EXPECT_TRUE(watch_text(*same).ends_with("; before it, Inf there, by `bmm`")) << watch_text(*same);
}

TEST(Watch, LossAndInference) {
  const auto fact =
      read_watch({{"watch", {{"what", "inf"}, {"kind", "loss"}, {"step", 1}, {"unit", "forward call"}}}});
  ASSERT_TRUE(fact);
  EXPECT_EQ(watch_text(*fact),
            "the first Inf of this run was in forward call 1, in the loss, or in what it was given beside "
            "the model's output");
}

TEST(Watch, UnreadableFactsAreAnErrorAndNoHint) {
  EXPECT_FALSE(diagnose_watch({{"kind", "watch"}}));
  for (const json& bad : {json(3), json::object(), json{{"kind", "output"}}, json{{"kind", "x"}, {"step", 1}},
                          json{{"kind", "loss"}, {"step", "1"}}}) {
    EXPECT_FALSE(read_watch({{"watch", bad}})) << bad.dump();
  }
}

json probabilities(int reason) {
  return {
      {"kind", "violation"},
      {"contract", "multinomial.self"},
      {"watch", kOutput},
      {"scan",
       {{"bad", 1}, {"total", 4}, {"first", 2}, {"reason", reason}, {"is_float", true}, {"value", "nan"}}}};
}

TEST(Watch, HelpsAFaultThatNanCausesAndNoOther) {
  const auto nan = diagnose_violation(probabilities(static_cast<int>(Reason::kNan)));
  ASSERT_TRUE(nan);
  EXPECT_EQ(nan->fix.front(), "print the input of `fc1` in step 12");
  ASSERT_FALSE(nan->evidence.empty());
  EXPECT_EQ(nan->evidence.back().source, "watch");
  const auto negative = diagnose_violation(probabilities(static_cast<int>(Reason::kNegative)));
  ASSERT_TRUE(negative);
  for (const Evidence& evidence : negative->evidence) EXPECT_NE(evidence.source, "watch");
}

TEST(Watch, ALossThatGrewUntilItOverflowedIsNoLogarithm) {
  json loss = {{"what", "inf"}, {"kind", "loss"}, {"step", 4}, {"unit", "step"}};
  EXPECT_TRUE(advises(loss, "log(0)"));
  loss["growth"] = {{"of", "loss"}, {"low", 1.0}, {"high", 1e15}, {"steps", 3}};
  EXPECT_FALSE(advises(loss, "log(0)"));
  EXPECT_TRUE(advises(loss, "learning rate"));
}

// Some row is the first to overflow: it is not to blame.
TEST(Watch, NoSampleWhereNumbersHaveGrown) {
  json watch = {{"what", "inf"}, {"kind", "output"}, {"step", 5}, {"name", "c2"}, {"op", "convolution"}};
  watch["sample"] = {{"dataset_index", 290}, {"batch", 4}, {"row", 0}, {"likely", true}};
  EXPECT_TRUE(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->sample);
  watch["growth"] = {{"of", "loss"}, {"low", 71.0}, {"high", 6.6e23}, {"steps", 3}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_FALSE(finding->sample);
  EXPECT_EQ(finding->fix.front(),
            "lower the learning rate or clip gradients: the numbers grew from step to step");
}

TEST(Watch, WhoseStepItIs) {
  json watch = kOutput;
  watch["optimizers"] = 3;
  const std::string step = "step " + std::to_string(watch["step"].get<int>()) + " ";
  EXPECT_NE(
      diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary.find(step + "of the 3 optimizers, in"),
      std::string::npos);
  watch["uneven"] = true;
  EXPECT_NE(diagnose_watch({{"kind", "watch"}, {"watch", watch}})
                ->summary.find(step + "of the optimizer that steps most, in"),
            std::string::npos);
}

TEST(Watch, AnOperationOutsideOfWhereItIsDefined) {
  json watch = kOutput;
  watch["op"] = "div";
  watch["finite_before"] = true;
  EXPECT_TRUE(
      advises(watch, "`div` was given finite numbers: find why its divisor is 0: an epsilon added to it"));
  watch["op"] = "div_";
  EXPECT_TRUE(advises(watch, "`div_` was given finite numbers: find why its divisor is 0"));
  watch["op"] = "mul";
  EXPECT_FALSE(advises(watch, "epsilon"));
}

// `nanmean((pred - target) ** 2)`: an exponent of 2 has no point where it has no derivative.
TEST(Watch, WhatALossLeavesOutGoesThroughItsDerivative) {
  json watch = {{"what", "nan"}, {"kind", "gradient"},         {"step", 8},
                {"op", "pow"},   {"backward", json::object()}, {"name", "w"}};
  EXPECT_TRUE(advises(watch, "at 0 with an exponent below 1"));
  watch["left_out"] = true;
  watch["element"] = {{"name", "by"}, {"index", {30, 1}}, {"value", "nan"}};
  EXPECT_EQ(
      diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
      "the first NaN of this run was in step 8, in the derivative of `pow`, between the modules and the "
      "loss: the loss was finite; it leaves out by[30, 1], which is NaN");
  EXPECT_TRUE(advises(watch, "seen = target.isfinite()"));
  EXPECT_FALSE(advises(watch, "exponent"));
}

}  // namespace
}  // namespace trapline::diagnose
