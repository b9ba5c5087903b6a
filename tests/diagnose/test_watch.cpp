// What `run --watch nan` saw, in words.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "diagnose/watch.hpp"
#include "reading.hpp"

namespace trapline::diagnose {
namespace {

using nlohmann::json;

const json kOutput = {{"what", "nan"},  {"kind", "output"}, {"step", 12},
                      {"unit", "step"}, {"name", "fc1"},    {"type", "Linear"}};

TEST(Watch, NamesStepAndLayer) {
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", kOutput}, {"process", {{"rank", 3}}}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->cause, Cause::kNonFiniteValue);
  EXPECT_EQ(finding->summary, "the first NaN of this run was in step 12, in the output of `fc1` (Linear)");
  EXPECT_EQ(finding->fix.front(), "print the input of `fc1` in step 12: everything before it was finite");
  EXPECT_EQ(finding->layer->name, "fc1");
  EXPECT_EQ(finding->process->rank, 3);
  EXPECT_EQ(finding->device_assert, false);
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

TEST(Watch, AdvisesOnlyWhatFitsThePlace) {
  json watch = kOutput;
  watch["op"] = "log";
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", watch}})->fix.size(), 1);
  EXPECT_EQ(diagnose_watch({{"kind", "watch"}, {"watch", kOutput}})->fix.size(), 4);
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
}

TEST(Watch, LossAndInference) {
  const auto fact =
      read_watch({{"watch", {{"what", "inf"}, {"kind", "loss"}, {"step", 1}, {"unit", "forward call"}}}});
  ASSERT_TRUE(fact);
  EXPECT_EQ(watch_text(*fact), "the first Inf of this run was in forward call 1, in the loss");
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
  EXPECT_EQ(nan->fix.front(), "print the input of `fc1` in step 12: everything before it was finite");
  ASSERT_FALSE(nan->evidence.empty());
  EXPECT_EQ(nan->evidence.back().source, "watch");
  const auto negative = diagnose_violation(probabilities(static_cast<int>(Reason::kNegative)));
  ASSERT_TRUE(negative);
  for (const Evidence& evidence : negative->evidence) EXPECT_NE(evidence.source, "watch");
}

}  // namespace
}  // namespace trapline::diagnose
