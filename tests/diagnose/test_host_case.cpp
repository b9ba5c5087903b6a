#include <gtest/gtest.h>

#include <limits>

#include "diagnose/host/case.hpp"

namespace trapline::diagnose {
namespace {

TEST(CallThatFits, AddsOrDropsADimensionOfOne) {
  EXPECT_EQ(call_that_fits("out", {4, 1}, {4}), "out.squeeze(1)");
  EXPECT_EQ(call_that_fits("y", {4}, {4, 1}), "y.unsqueeze(1)");
  EXPECT_EQ(call_that_fits("y", {1, 8, 8}, {8, 8}), "y.squeeze(0)");
}

TEST(CallThatFits, FlattensPermutesAndReshapes) {
  EXPECT_EQ(call_that_fits("x", {32, 16, 5, 5}, {32, 400}), "x.flatten(1)");
  EXPECT_EQ(call_that_fits("x", {3, 5}, {5, 3}), "x.t()");
  EXPECT_EQ(call_that_fits("x", {8, 28, 28, 3}, {8, 3, 28, 28}), "x.permute(0, 3, 1, 2)");
  EXPECT_EQ(call_that_fits("x", {6, 4}, {8, 3}), "x.reshape(8, 3)");
}

TEST(CallThatFits, SaysNothingWhenElementsWouldBeInventedOrLost) {
  EXPECT_EQ(call_that_fits("x", {4, 3}, {4}), "");
  EXPECT_EQ(call_that_fits("x", {4}, {4}), "");
}

TEST(HostCase, ParsesShapes) {
  EXPECT_EQ(parse_shape("[32, -1]"), (Shape{32, -1}));
  EXPECT_EQ(parse_shape(""), Shape{});
  EXPECT_EQ(parse_shape("99999999999999999999999, 3"), Shape{3});
  EXPECT_EQ(to_text(Shape{}), "[]");
}

TEST(HostCase, CountsElementsWithoutOverflow) {
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({1LL << 40, 1LL << 40}), std::numeric_limits<std::int64_t>::max());
}

TEST(HostCase, ClipsBetweenCharacters) {
  EXPECT_EQ(clip("abc", 5), "abc");
  EXPECT_EQ(clip("a\xc3\xa9z", 2), "a");
  EXPECT_EQ(clip("a\xc3\xa9z", 3), "a\xc3\xa9");
}

}  // namespace
}  // namespace trapline::diagnose
