// What is advised for the operation that made a NaN, where the usual word would hide the mistake.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "watch_facts.hpp"

namespace trapline::diagnose {
namespace {

// cos = h @ w / (|h| * |w|) of weights that nobody has initialised: with an epsilon they would stay so.
TEST(WatchAdvice, WeightsOfZerosAreToldBeforeAnEpsilon) {
  json watch = {{"what", "nan"}, {"kind", "output"}, {"step", 1},          {"unit", "step"},
                {"op", "div"},   {"name", "head"},   {"type", "LSoftmax"}, {"finite_before", true}};
  EXPECT_TRUE(advises(watch, "epsilon"));
  watch["zeros"] = "weight";
  EXPECT_FALSE(advises(watch, "epsilon"));
  EXPECT_TRUE(advises(watch, "its weights `weight` are 0 everywhere: look at how they are initialised"));
}

// No epsilon moves an infinity.
TEST(WatchAdvice, AnInfinityIsReplacedAndNotMoved) {
  json watch = {{"what", "nan"}, {"kind", "gradient"}, {"step", 1},      {"unit", "step"},
                {"op", "sqrt"},  {"name", "emit"},     {"looked", true}, {"backward", json::object()}};
  EXPECT_TRUE(advises(watch, "away from there (an epsilon, a clamp)"));
  watch["op"] = "logaddexp";
  EXPECT_TRUE(advises(watch, "away from there (a large negative number in place of -inf)"));
  EXPECT_FALSE(advises(watch, "epsilon"));
}

TEST(WatchAdvice, ADeterminantBelowZero) {
  const json watch = {{"what", "nan"},  {"kind", "output"}, {"step", 3},         {"unit", "step"},
                      {"op", "logdet"}, {"name", "mix.1"},  {"type", "Conv1x1"}, {"finite_before", true}};
  EXPECT_TRUE(advises(watch, "torch.linalg.slogdet()[1]"));
}

}  // namespace
}  // namespace trapline::diagnose
