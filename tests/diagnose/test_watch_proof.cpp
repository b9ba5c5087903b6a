// What of the watch's findings is proven, and which derivative it was.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "watch_facts.hpp"

namespace trapline::diagnose {
namespace {

TEST(Watch, TheDerivativeThatWasSeenIsProven) {
  const json watch = {{"what", "inf"}, {"kind", "gradient"},
                      {"step", 4},     {"name", "fc.weight"},
                      {"op", "sqrt"},  {"backward", {{"name", "norm"}, {"type", "Norm"}}}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->summary,
            "the first Inf of this run was in step 4, in the derivative of `sqrt`, in `norm` (Norm): the "
            "loss was finite");
  EXPECT_EQ(finding->certainty, Certainty::kProven);
  ASSERT_TRUE(finding->layer);
  EXPECT_EQ(finding->layer->name, "norm");
  EXPECT_TRUE(advises(watch, "is not finite at 0"));
}

TEST(Watch, ADerivativeOfTheProgramsOwn) {
  const json watch = {{"what", "nan"},          {"kind", "gradient"},         {"step", 4},
                      {"op", "Scale.backward"}, {"backward", json::object()}, {"name", "w"}};
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
            "the first NaN of this run was in step 4, in `Scale.backward`, between the modules and the "
            "loss: the loss was finite");
  EXPECT_TRUE(advises(watch, "look at its divisions and roots"));
}

TEST(Watch, AnUpdateIsProvenOnlyByFiniteGradients) {
  json watch = {{"what", "nan"}, {"kind", "optimizer"}, {"step", 3}, {"unit", "step"}, {"name", "w"}};
  const auto certainty = [&] { return diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty; };
  EXPECT_EQ(certainty(), Certainty::kLikely);
  watch["gradients_finite"] = true;
  EXPECT_EQ(certainty(), Certainty::kProven);
  watch["setting"] = "eps=0";
  EXPECT_TRUE(advises(watch, "eps=0"));
}

TEST(Watch, AnOperationIsProvenOnlyByWhatItWasGiven) {
  json watch = kOutput;
  watch["op"] = "log";
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kLikely);
  watch["finite_before"] = true;
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kProven);
}

TEST(Watch, AMeanOverNothing) {
  const json watch = {{"what", "nan"}, {"kind", "loss"}, {"step", 3}, {"unit", "step"}, {"op", "nll_loss"}};
  EXPECT_TRUE(advises(watch, "every target was ignore_index"));
  EXPECT_FALSE(advises(watch, "epsilon"));
}

TEST(Watch, DerivativesThatCanBeTheOne) {
  const json watch = {{"what", "nan"},     {"kind", "gradient"},
                      {"name", "fc.bias"}, {"step", 41},
                      {"unit", "step"},    {"made_with", {"mean", "acos", "mul", "addmm", "div"}}};
  EXPECT_TRUE(
      advises(watch, "a derivative was not: here that can be the one of `acos` (at 1 and -1) or `div` ("));
}

TEST(Watch, WhatTheLossIsMultipliedWith) {
  const json watch = {{"what", "nan"},  {"kind", "loss"}, {"step", 3},
                      {"unit", "step"}, {"op", "mul"},    {"factor", true}};
  EXPECT_EQ(
      diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
      "the first NaN of this run was in step 3, in what the loss is multiplied or divided with (`mul`)");
  EXPECT_TRUE(advises(watch, "what the loss is multiplied or divided with"));
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kLikely);
}

TEST(Watch, WhatComputedTheFactor) {
  json watch = {{"what", "nan"},  {"kind", "loss"}, {"step", 3},
                {"unit", "step"}, {"op", "mul"},    {"factor", true}};
  watch["computed"] = {{"name", "gain"}, {"text", "(r - r.mean()) / r.std()"}, {"line", 12}};
  EXPECT_EQ(
      diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
      "the first NaN of this run was in step 3, in `gain`, which the loss is multiplied or divided with "
      "(`mul`)");
  EXPECT_TRUE(
      advises(watch, "`gain` is not finite: look at `gain = (r - r.mean()) / r.std()`: a division by 0"));
  watch["computed"] = {{"name", "gain"}, {"text", "torch.stack([b[1] for b in batch])"}, {"line", 12}};
  EXPECT_TRUE(advises(watch, "only puts together what was so before: look at what made the parts"));
  watch["computed"]["text"] = "torch.tensor(total / (len(NAMES) * counts), dtype=torch.float32)";
  EXPECT_FALSE(advises(watch, "only puts together")) << "the division is its own";
  watch["computed"] = {{"name", "gain"}};
  EXPECT_TRUE(advises(watch, "`gain` is not finite: look at where it is computed: a division by 0"));
  watch["element"] = {{"name", "gain"}, {"index", {3}}, {"value", "nan"}};
  EXPECT_TRUE(advises(watch, "`gain[3]` is not finite: look at where it is computed: a division by 0"));
  watch.erase("element");
  watch["op"] = "nll_loss";  // weighted by numbers that are not finite, which is no empty mean
  EXPECT_TRUE(advises(watch, "`gain` is not finite"));
}

TEST(Watch, WhatMeetsAMasksInfinity) {
  json loss = {{"what", "inf"},  {"kind", "loss"},      {"step", 52},
               {"unit", "step"}, {"op", "masked_fill"}, {"smoothed", true}};
  EXPECT_TRUE(advises(loss,
                      "label_smoothing adds the log-probabilities of all classes, also of those that "
                      "`masked_fill` gives -inf"));
  loss.erase("smoothed");
  EXPECT_FALSE(advises(loss, "label_smoothing"));
  json product = {{"what", "nan"},  {"kind", "output"}, {"step", 2},
                  {"unit", "step"}, {"op", "addmm"},    {"name", "head.0"}};
  EXPECT_TRUE(advises(product,
                      "`addmm` was given an infinity, and 0 times that is NaN: look at the input of "
                      "`head.0`"));
  product["finite_before"] = true;
  EXPECT_FALSE(advises(product, "was given an infinity"));
}

TEST(Watch, GradientsThatWereChangedBeforeTheStep) {
  json watch = {{"what", "nan"}, {"kind", "gradient"}, {"step", 3}, {"unit", "step"}, {"changed", true}};
  watch["growth"] = {{"of", "loss"}, {"low", 0.1}, {"high", 20.0}, {"steps", 20}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_EQ(finding->summary,
            "the first NaN of this run was in step 3, in the gradients, between `backward` and the "
            "optimizer's step");
  EXPECT_EQ(finding->certainty, Certainty::kLikely);
  EXPECT_TRUE(advises(watch, "divided by a norm that is 0"));
  EXPECT_FALSE(advises(watch, "learning rate"));
}

TEST(Watch, AnOperationOfTheUpdateIsNoDerivative) {
  json watch = {{"what", "nan"},     {"kind", "optimizer"},      {"step", 7},  {"unit", "step"},
                {"name", "fc.bias"}, {"gradients_finite", true}, {"op", "div"}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_EQ(finding->summary,
            "the first NaN of this run was in step 7, in the optimizer's update of `fc.bias`, by `div`");
  EXPECT_EQ(finding->certainty, Certainty::kProven);
  EXPECT_TRUE(advises(
      watch, "the gradients of step 7 were finite, `div` in the update was not: look at what it was given"));
  EXPECT_FALSE(advises(watch, "add an epsilon"));
  watch["others"] = 3;
  EXPECT_TRUE(diagnose_watch({{"kind", "watch"}, {"watch", watch}})
                  ->summary.ends_with("update of `fc.bias` and 3 others, by `div`"));
}

TEST(Watch, WeightsThatTheProgramChangedItself) {
  json watch = {{"what", "nan"},  {"kind", "weights"}, {"step", 7},
                {"unit", "step"}, {"name", "fc.bias"}, {"written", "backward"}};
  const auto summary = [&] { return diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary; };
  EXPECT_EQ(summary(),
            "the first NaN of this run was in step 7, in `fc.bias`, which the program itself changed after "
            "`backward`");
  EXPECT_TRUE(advises(watch, "look at what else writes weights there"));
  EXPECT_FALSE(advises(watch, "checkpoint"));
  watch["written"] = "step";
  EXPECT_TRUE(summary().ends_with("changed after the optimizer's step"));
  watch["written"] = "loss";
  EXPECT_TRUE(summary().ends_with("changed after the `backward` of the step before"));
  watch["written"] = "forward";
  EXPECT_TRUE(summary().ends_with("in `fc.bias`, which the forward pass itself has written"));
  EXPECT_TRUE(advises(watch, "a column that is constant"));
  watch["written"] = "first";
  EXPECT_TRUE(summary().ends_with(
      "in `fc.bias`, which the program itself has written besides the optimizer's steps"));
  EXPECT_TRUE(advises(watch, "look at what writes `fc.bias` besides the optimizer"));
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kLikely);
}

TEST(Watch, WhereInTheResult) {
  json watch = {{"what", "inf"},  {"kind", "loss"}, {"step", 7},
                {"unit", "step"}, {"op", "log"},    {"looked", true}};
  watch["part"] = {{"index", {0, 2}}, {"bad", 1}, {"total", 6}};
  const auto summary = [&] { return diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary; };
  EXPECT_TRUE(summary().ends_with("in the loss, by `log`, at [0, 2] of what it made (1 of 6)")) << summary();
  watch["sample"] = {{"dataset_index", 4}, {"batch", 0}};
  EXPECT_TRUE(summary().ends_with("in the loss, by `log`")) << "a sample says more: " << summary();
  watch["sample"]["likely"] = true;
  EXPECT_TRUE(summary().ends_with("at [0, 2] of what it made (1 of 6)")) << summary();
}

TEST(Watch, WhatLoadStateDictHasPutInPlace) {
  json watch = {{"what", "nan"},  {"kind", "weights"}, {"step", 7},
                {"unit", "step"}, {"name", "fc.bias"}, {"written", "loaded"}};
  const auto summary = [&] { return diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary; };
  EXPECT_TRUE(summary().ends_with("in `fc.bias`, which `load_state_dict` has put in place")) << summary();
  EXPECT_TRUE(advises(watch, "look at how the state that is loaded there was made"));
  watch["op"] = "div";
  EXPECT_TRUE(summary().ends_with("has put in place; `div` made it")) << summary();
  EXPECT_TRUE(
      advises(watch, "`div` was given finite numbers, before the state was loaded: find why its divisor"));
}

TEST(Watch, ASiteOfAProbabilisticProgram) {
  json watch = {{"what", "nan"}, {"kind", "loss"}, {"step", 7}, {"unit", "step"}, {"op", "log"}};
  watch["site"] = {{"name", "obs"}, {"type", "Normal"}, {"parameter", "scale"}, {"value", -0.5}};
  EXPECT_EQ(
      diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
      "the first NaN of this run was in step 7, in the loss, by `log`, at the site `obs` (Normal, whose "
      "scale is -0.5)");
  EXPECT_TRUE(advises(watch, "the distribution does not allow that scale"));
  watch["site"] = {{"name", "obs"}, {"type", "Poisson"}};
  EXPECT_TRUE(diagnose_watch({{"kind", "watch"}, {"watch", watch}})
                  ->summary.ends_with("at the site `obs` (Poisson)"));
  EXPECT_TRUE(advises(watch, "find why 0 or less goes into it"));
}

TEST(Watch, TheElementOfTheDataByItsName) {
  json watch = {{"what", "nan"}, {"kind", "input"}, {"step", 7}, {"unit", "step"}};
  watch["element"] = {{"name", "batch['x']"}, {"index", {3, 12}}, {"value", "nan"}};
  const auto summary = [&] { return diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary; };
  EXPECT_EQ(summary(), "the first NaN of this run was in step 7, in the data: batch['x'][3, 12] is NaN");
  watch["element"]["value"] = "-inf";
  watch["kind"] = "target";
  EXPECT_TRUE(
      summary().ends_with("the targets or weights that the loss was given: batch['x'][3, 12] is Inf"));
  watch["looked"] = false;
  EXPECT_EQ(summary().find("batch"), std::string::npos);
}

TEST(Watch, WhatADataSetMadeWhenItWasAskedAgain) {
  json watch = {{"what", "nan"}, {"kind", "input"}, {"step", 7}, {"unit", "step"}};
  watch["sample"] = {{"dataset_index", 37}};
  watch["fetched"] = {{"op", "div"}};
  EXPECT_TRUE(
      advises(watch, "`div` in this line is given finite numbers of that sample: find why its divisor"));
  EXPECT_FALSE(advises(watch, "mend them, or leave them out"));
  watch["fetched"] = {{"numpy", "invalid value"}};
  EXPECT_TRUE(
      advises(watch, "NumPy meets an `invalid value` in this line (0/0, the log or root of a negative"));
  watch["fetched"] = {{"numpy", "overflow"}};
  EXPECT_TRUE(advises(watch, "NumPy meets an `overflow` in this line: look at what goes in there"));
}

TEST(Watch, AWeightThatWasInfiniteBeforeItsGradient) {
  json watch = {{"what", "nan"}, {"kind", "gradient"}, {"step", 3}, {"unit", "step"}, {"op", "pow"}};
  watch["backward"] = {{"name", ""}, {"type", "Widths"}};
  EXPECT_TRUE(advises(watch, "the derivative of `pow` is not finite"));
  watch["infinite"] = "width";
  EXPECT_TRUE(advises(watch, "the weight `width` held an infinity before that"));
  EXPECT_FALSE(advises(watch, "an epsilon, a clamp"));
}

TEST(Watch, ABufferThatALossHasComputedWhenItWasMade) {
  json watch = {{"what", "nan"}, {"kind", "weights"}, {"step", 1}, {"unit", "step"}, {"buffer", true}};
  watch["name"] = "criterion.m_list";
  EXPECT_TRUE(advises(watch, "rows that nothing has written"));
  watch["type"] = "LDAMLoss";
  EXPECT_TRUE(advises(watch, "look at what LDAMLoss was given when it was made"));
  EXPECT_FALSE(advises(watch, "rows that nothing has written"));
}

TEST(Watch, WhatMadeTheFactorOfALoss) {
  json watch = {{"what", "nan"},  {"kind", "loss"}, {"step", 7},
                {"unit", "step"}, {"op", "mul"},    {"factor", true}};
  watch["computed"] = {{"name", "w"}, {"text", "dwa.weights()"}, {"line", 65}};
  EXPECT_TRUE(advises(watch, "`w` is not finite: look at `w = dwa.weights()`: a division by 0"));
  watch["factor_by"] = "div";
  EXPECT_TRUE(advises(watch, "`div` made that of finite numbers in this line: find why its divisor is 0"));
  EXPECT_FALSE(advises(watch, "the std of one element"));
}

TEST(Watch, AProductOfMatricesOverflowsOnlyWhereItWasGivenFiniteNumbers) {
  json watch = {{"what", "nan"}, {"kind", "loss"}, {"step", 7}, {"unit", "step"}, {"op", "mm"}};
  EXPECT_FALSE(advises(watch, "overflowed"));
  watch["finite_before"] = true;
  EXPECT_TRUE(advises(watch, "`mm` was given finite numbers: a sum of products overflowed"));
  watch["op"] = "lgamma";
  EXPECT_TRUE(advises(watch, "it is infinite at 0 and at negative whole numbers"));
}

TEST(Watch, HowManyRowsOfTheDataSet) {
  json watch = {{"what", "nan"}, {"kind", "input"}, {"step", 7}, {"unit", "step"}};
  watch["sample"] = {{"dataset_index", 37}};
  watch["rows"] = {{"bad", 1}, {"total", 400}, {"first", {37}}, {"place", {3}}};
  EXPECT_FALSE(advises(watch, "hold such numbers"));
  watch["rows"] = {{"bad", 2}, {"total", 400}, {"first", {37, 41}}, {"place", {3}}};
  EXPECT_TRUE(advises(watch, "2 of the 400 rows of that data set hold such numbers: 37, 41"));
  EXPECT_TRUE(advises(watch, "mend them, or leave them out"));
  EXPECT_TRUE(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->sample.has_value());
  watch["rows"]["bad"] = 201;
  EXPECT_TRUE(
      advises(watch, "201 of the 400 rows of that data set hold such numbers, all at [3] of a row: look"));
  EXPECT_FALSE(advises(watch, "leave them out"));
  EXPECT_FALSE(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->sample.has_value());
  watch["rows"].erase("place");
  EXPECT_TRUE(advises(watch, "hold such numbers: look at how all of them are made"));
  watch["rows"] = {{"bad", 8}, {"total", 8}, {"batch", true}};
  watch["fetched"]["op"] = "div";
  EXPECT_TRUE(advises(watch, "all 8 rows of that batch hold such numbers at the same place"));
  EXPECT_TRUE(advises(watch, "`div` in this line is given finite numbers: find why its divisor is 0"));
  EXPECT_FALSE(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->sample.has_value());
}

TEST(Watch, ABufferIsNoWeight) {
  json watch = {{"what", "nan"},  {"kind", "weights"}, {"step", 7},
                {"unit", "step"}, {"name", "queue"},   {"buffer", true}};
  EXPECT_EQ(
      diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
      "the first NaN of this run was in step 7, in the buffer `queue`, which held it before the forward "
      "pass");
  EXPECT_TRUE(advises(watch, "look at what writes `queue`"));
}

TEST(Watch, WhatUnderflowsInHalfPrecision) {
  json watch = {{"what", "nan"}, {"kind", "output"},     {"step", 7}, {"unit", "step"}, {"op", "div"},
                {"half", true},  {"finite_before", true}};
  EXPECT_TRUE(advises(watch, "float16 holds nothing below 6e-8: if what goes into `div` became 0"));
  watch["op"] = "acos";
  EXPECT_FALSE(advises(watch, "6e-8"));
}

TEST(Watch, AProductThatIsNaNDidNotOverflow) {
  json watch = {{"what", "nan"}, {"kind", "loss"}, {"step", 7}, {"unit", "step"}, {"op", "mul"}};
  EXPECT_TRUE(advises(watch, "`mul`: 0 times an infinity"));
  watch["what"] = "inf";
  EXPECT_FALSE(advises(watch, "0 times an infinity"));
}

TEST(Watch, WhatIsPickedOfAMaskIsNoEmptyMean) {
  json watch = {{"what", "inf"}, {"kind", "loss"}, {"step", 7}, {"unit", "step"}, {"op", "nll_loss"}};
  EXPECT_TRUE(advises(watch, "`nll_loss` picked an infinity that was there on purpose"));
  EXPECT_FALSE(advises(watch, "nothing to average"));
  watch["what"] = "nan";
  EXPECT_TRUE(advises(watch, "nothing to average"));
}

TEST(Watch, AKnownDerivativeIsNotAdvisedToLearnMoreSlowly) {
  json watch = {
      {"what", "nan"}, {"kind", "optimizer"}, {"step", 3}, {"unit", "step"}, {"op", "Step.backward"}};
  watch["growth"] = {{"of", "loss"}, {"low", 0.1}, {"high", 20.0}, {"steps", 20}};
  EXPECT_FALSE(advises(watch, "learning rate"));
  EXPECT_TRUE(advises(watch, "divisions and roots of `Step.backward`"));
}

TEST(Watch, ATableMayHaveBeenBadForLong) {
  const json watch = {{"what", "nan"},  {"kind", "optimizer"},  {"step", 30},
                      {"unit", "step"}, {"name", "emb.weight"}, {"or_before", true}};
  EXPECT_EQ(
      diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
      "the first NaN of this run was in step 30 or before it, in the gradient or the update of `emb.weight`");
}

TEST(Watch, WhatGoesIntoALaterModuleIsLikely) {
  json watch = {{"what", "inf"}, {"kind", "input"}, {"type", "Linear"}, {"step", 3}, {"unit", "step"}};
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kProven);
  watch["looked"] = false;
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kLikely);
  EXPECT_TRUE(advises(watch, "look at what is computed before Linear"));
  EXPECT_FALSE(advises(watch, "mend them"));
}

TEST(Watch, AnUpdateWhoseGradientsWereNotLookedAt) {
  const json watch = {{"what", "nan"}, {"kind", "optimizer"}, {"name", "out.bias"},
                      {"step", 97},    {"unit", "step"},      {"made_with", {"mean", "pow"}}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_EQ(finding->summary,
            "the first NaN of this run was in step 97, in the gradient or the update of `out.bias`");
  EXPECT_EQ(finding->certainty, Certainty::kLikely);
  EXPECT_TRUE(advises(watch,
                      "can be the one of `pow` (at 0 with an exponent below 1, nor below "
                      "0 where the exponent is trained)"));
}

TEST(Watch, GradientsOnADevice) {
  const json watch = {
      {"what", "nan"}, {"kind", "gradient"}, {"looked", false}, {"step", 25}, {"unit", "step"}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_EQ(finding->summary,
            "the first NaN that was noticed was in the gradients of step 25: its loss was finite");
  EXPECT_EQ(finding->certainty, Certainty::kLikely);
  EXPECT_TRUE(advises(watch, "`--watch nan` looks at every layer"));
}

TEST(Watch, KeepsTheLastSteps) {
  json watch = kOutput;
  watch["last_steps"] = {{{"step", 6}, {"loss", 0.5}}, {{"step", 7}, {"loss", "nan"}, {"gradient_norm", 2}}};
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_EQ(finding->last_steps.size(), 2);
  EXPECT_EQ(finding->last_steps[0].step, 6);
  EXPECT_EQ(as_double(*finding->last_steps[0].loss), 0.5);
  EXPECT_FALSE(finding->last_steps[0].gradient_norm);
  EXPECT_TRUE(std::isnan(as_double(*finding->last_steps[1].loss)));
}

TEST(Watch, ADerivativeThatTheForwardPassAskedFor) {
  json watch = kOutput;
  watch.update(
      {{"op", "acos"}, {"derived", true}, {"finite_before", true}, {"name", ""}, {"type", "Potential"}});
  EXPECT_EQ(
      diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
      "the first NaN of this run was in step 12, in the output of a Potential, by the derivative of `acos`");
  EXPECT_TRUE(advises(watch, "the derivative of `acos` is not finite at 1 and -1"));
  watch["derived"] = false;
  EXPECT_TRUE(advises(watch, "find why a number beyond -1..1 goes into it"));
}

TEST(Watch, AMeanOverNothingInAModule) {
  json watch = kOutput;
  watch.update({{"op", "nll_loss"}, {"finite_before", true}});
  EXPECT_TRUE(advises(watch, "every target was ignore_index"));
  watch["op"] = "mean";
  EXPECT_TRUE(advises(watch, "it was given no element"));
  watch["what"] = "inf";  // it overflowed
  EXPECT_FALSE(advises(watch, "it was given no element"));
}

// NumPy tells the line; that the number came from there is likely.
TEST(WatchProof, WhereNumPyWarned) {
  const json warned = {{"text", "divide by zero encountered in log"},
                       {"file", "/home/u/env.py"},
                       {"line", 20},
                       {"code", "    gain = np.log(power)"},
                       {"user", true}};
  json watch = {{"what", "inf"}, {"kind", "input"}, {"step", 5}, {"unit", "step"}, {"type", "Net"}};
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->certainty, Certainty::kProven);
  watch["warned"] = json::array({warned});
  const auto one = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->origin->line, 20);
  EXPECT_EQ(one->certainty, Certainty::kLikely);
  EXPECT_EQ(
      one->fix.front(),
      "NumPy warned at env.py:20 of `divide by zero encountered in log`, in `gain = np.log(power)`: look "
      "at what was given there");
  json other = warned;
  other["line"] = 31;
  other["text"] = "std(): degrees of freedom is <= 0. Correction should be strictly less";
  watch["warned"] = json::array({warned, other});
  const auto both = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_FALSE(both->origin);
  EXPECT_TRUE(advises(watch, "PyTorch warned at env.py:31 of `std(): degrees of freedom is <= 0`"));
}

TEST(WatchProof, ABatchThatAloneIsNotFinite) {
  json watch = kOutput;
  watch["spoilt"] = "inf";
  EXPECT_EQ(fix_of(watch).front(),
            "begin with the data: the batch of this step holds Inf, and those before it held none");
  watch["element"] = {{"name", "x"}, {"index", {3, 12}}, {"value", "inf"}};
  EXPECT_TRUE(advises(watch, "holds Inf (x[3, 12]), and"));
}

TEST(WatchProof, ASquareThatOverflowed) {
  const json watch = {{"what", "inf"}, {"kind", "loss"}, {"step", 5}, {"unit", "step"}, {"op", "mse_loss"}};
  EXPECT_TRUE(advises(watch, "look for a fill value in the data (1e20, 9.97e36)"));
}

TEST(Watch, AnInfinityThatWasPutThereAndThatNothingHasReplaced) {
  json watch = kOutput;
  watch["op"] = "addmm";
  watch["met"] = {{"op", "new_full"},
                  {"origin", {{"file", "net.py"}, {"line", 44}, {"code", "out = h.new_full(...)"}}},
                  {"index", {2, 0}},
                  {"bad", 16},
                  {"total", 304}};
  EXPECT_EQ(
      fix_of(watch)[0],
      "`addmm` was given an infinity at [2, 0] (16 of 304), which `new_full` puts there in net.py:44, and "
      "nothing has replaced: give what is left of it a number (0), or leave it out, before `fc1`");
  watch["finite_before"] = true;
  EXPECT_FALSE(advises(watch, "new_full"));
}

TEST(Watch, NobodyEditsALineOfALibrary) {
  json watch = kOutput;
  watch["op"] = "div";
  watch["finite_before"] = true;
  watch["origin"] = {{"file", "lib/net.py"}, {"line", 9}, {"code", "a / b"}, {"user", false}};
  EXPECT_EQ(fix_of(watch)[0],
            "`div` was given finite numbers, in a line of a library: find why its divisor is 0: look at what "
            "it was "
            "given in step 12, and how it was set up");
  watch["origin"]["user"] = true;
  EXPECT_TRUE(advises(watch, "an epsilon added to it"));
}

TEST(Watch, WhatLeadsToTheLossIsNotSaidToBeIn) {
  json watch = {{"what", "nan"}, {"kind", "loss"}, {"step", 91}, {"unit", "step"}, {"op", "sqrt"}};
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
            "the first NaN of this run was in step 91, in the loss, by `sqrt`");
  watch["leads"] = true;
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
            "the first NaN of this run was in step 91, in what leads to the loss, by `sqrt`");
}

TEST(Watch, WhatAModuleWasGivenByItsName) {
  const json watch = {{"what", "inf"},
                      {"kind", "input"},
                      {"step", 12},
                      {"unit", "step"},
                      {"type", "Grade"},
                      {"looked", false},
                      {"element", {{"name", "src"}, {"index", {3, 0, 0, 0}}, {"value", "-inf"}}}};
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->summary,
            "the first Inf of this run was in step 12, in what goes into Grade: src[3, 0, 0, 0] is Inf");
  EXPECT_TRUE(advises(watch, "look at what makes `src`"));
}

}  // namespace
}  // namespace trapline::diagnose
