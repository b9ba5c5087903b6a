// Both sides of an index: how its numbers came to be where they are, and what has too few places for them.
#include "advice.hpp"

namespace trapline::diagnose {
namespace {

// The index may be right, and what it is used on one too short; not so where one number lies far away.
TEST(AdviceSides, WhatMakesTheIndexedTensorIsLookedAtAsWell) {
  const std::string other =
      "see as well whether `hits = torch.zeros(n)` (hits.py:7), which gives what is indexed its size, makes "
      "all the places: there are 10";
  for (const char* op : {"gather.index", "index_add.index"}) {
    json facts = facts_of(op, 10, 10);
    EXPECT_FALSE(says(diagnose(facts), "which gives what is indexed its size")) << all(diagnose(facts));
    facts["indexed"] = {{"name", "hits"}, {"text", "torch.zeros(n)"}, {"file", "/a/hits.py"}, {"line", 7}};
    EXPECT_TRUE(says(diagnose(facts), other)) << all(diagnose(facts));
    EXPECT_FALSE(says(diagnose(facts), "only if")) << all(diagnose(facts));
    facts["scan"]["value"] = facts["scan"]["max"] = 4711;
    facts["values"] = {{4711, 1}};
    EXPECT_FALSE(says(diagnose(facts), "which gives what is indexed its size")) << all(diagnose(facts));
  }
}

// All numbers from 40 on and none below: an offset, and no list with gaps.
TEST(AdviceSides, NumbersThatAnOffsetHasMoved) {
  json facts = facts_of("one_hot.self", 71, 42);
  facts["scan"].update({{"bad", 716}, {"total", 720}, {"min", 40}, {"max", 71}});
  facts["seen"] = {{"min", 40}, {"max", 71}, {"count", 720}, {"source", "calls"}, {"here", 32}, {"gap", 0}};
  EXPECT_TRUE(says(diagnose(facts), "all numbers from 40 to 71 occur, and none below"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "a longer list")) << all(diagnose(facts));
  facts["seen"].update({{"here", 20}});
  EXPECT_FALSE(says(diagnose(facts), "and none below")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "a longer list")) << all(diagnose(facts));
}

// As many different ones as there are places may be chance where each occurs once or twice.
TEST(AdviceSides, FewOfEachAreNotNumberedAnew) {
  json facts = facts_of("scatter.index", 25, 12);
  facts["scan"].update({{"bad", 9}, {"total", 16}, {"min", 3}, {"max", 32}});
  facts["seen"] = {{"min", 3}, {"max", 32}, {"count", 16}, {"source", "calls"}, {"here", 12}, {"gap", 0}};
  facts["assigned"] = {
      {"name", "label"}, {"text", "label + n * speed"}, {"file", "/a/data.py"}, {"line", 60}};
  EXPECT_FALSE(says(diagnose(facts), "torch.unique(")) << all(diagnose(facts));
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("look at `label = label + n * speed` (data.py:60)"));
  facts["scan"].update({{"bad", 30}, {"total", 48}});
  const Finding many = diagnose(facts);
  EXPECT_TRUE(many.fix.front().starts_with("look at `label = label + n * speed` (data.py:60)")) << all(many);
  EXPECT_TRUE(says(many, "torch.unique(")) << all(many);
}

// A search less 1 is what is on the first edge or below it, and no mark.
TEST(AdviceSides, ASearchThatOneIsTakenOff) {
  json facts = facts_of("scatter_add.index", -1, 10);
  facts["scan"].update({{"bad", 103}, {"total", 300}, {"min", -1}, {"max", 9}});
  EXPECT_TRUE(
      diagnose(facts).summary.ends_with("looks like an ignore label, which scatter_add does not have"));
  facts["computed"] = {
      {"name", "bin"}, {"text", "torch.bucketize(x, edges) - 1"}, {"line", 30}, {"by", "bucketize"}};
  const Finding found = diagnose(facts);
  EXPECT_EQ(found.summary.find("ignore label"), std::string::npos) << found.summary;
  EXPECT_TRUE(says(found, "bucketize gives 0 to what is on the first edge or below it: less 1"))
      << all(found);
}

// An unpooling of another size than the pooling had; where a rest is left out at the edge, its size is named.
TEST(AdviceSides, AnUnpoolingOfAnotherSize) {
  json facts = facts_of("max_unpool2d.indices", 33, 32);
  facts["scan"]["max"] = 63;
  const char* size = "output_size=x.size()";
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("see whether kernel_size and stride of the unpooling"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), size)) << all(diagnose(facts));
  facts["scan"]["max"] = 34;
  EXPECT_TRUE(says(diagnose(facts), size)) << all(diagnose(facts));
}

}  // namespace
}  // namespace trapline::diagnose
