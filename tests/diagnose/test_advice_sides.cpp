// Both sides of an index: how its numbers came to be where they are, and what has too few places for them.
#include "advice.hpp"

namespace trapline::diagnose {
namespace {

// The index may be right, and what it is used on one too short; not so where one number lies far away.
TEST(AdviceSides, WhatMakesTheIndexedTensorIsLookedAtAsWell) {
  const std::string other =
      "what is indexed is `hits = torch.zeros(n)` (hits.py:7), with 10 places: see that these and the "
      "numbers "
      "are counted alike";
  for (const char* op : {"gather.index", "index_add.index"}) {
    json facts = facts_of(op, 10, 10);
    EXPECT_FALSE(says(diagnose(facts), "what is indexed is")) << all(diagnose(facts));
    facts["indexed"] = {{"name", "hits"}, {"text", "torch.zeros(n)"}, {"file", "/a/hits.py"}, {"line", 7}};
    EXPECT_TRUE(says(diagnose(facts), other)) << all(diagnose(facts));
    EXPECT_FALSE(says(diagnose(facts), "only if")) << all(diagnose(facts));
    facts["scan"]["value"] = facts["scan"]["max"] = 4711;
    facts["values"] = {{4711, 1}};
    EXPECT_FALSE(says(diagnose(facts), "what is indexed is")) << all(diagnose(facts));
  }
}

// All numbers from 40 on and none below: an offset, and no list with gaps.
TEST(AdviceSides, NumbersThatAnOffsetHasMoved) {
  json facts = facts_of("one_hot.self", 71, 42);
  facts["scan"].update({{"bad", 716}, {"total", 720}, {"min", 40}, {"max", 71}});
  facts["seen"] = {{"min", 40}, {"max", 71}, {"count", 720}, {"source", "calls"}, {"here", 32}, {"gap", 0}};
  EXPECT_TRUE(says(diagnose(facts), "all numbers from 40 to 71 occur, and none below"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "see what each of them stands for")) << all(diagnose(facts));
  facts["seen"].update({{"here", 20}});
  EXPECT_FALSE(says(diagnose(facts), "and none below")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "see what each of them stands for")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "enumerate(")) << "no recipe\n" << all(diagnose(facts));
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
  EXPECT_FALSE(says(many, "torch.unique(")) << "a guess behind the statement\n" << all(many);
  facts.erase("assigned");
  EXPECT_TRUE(says(diagnose(facts), "torch.unique(")) << all(diagnose(facts));
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

// With finite weights: of a row that has an infinity itself no 0/0 is told.
TEST(AdviceSides, ARowOfTheBatchThatIsNotFinite) {
  json facts = facts_of("multinomial.self", 0, 0, {{"op", "multinomial"}});
  facts["scan"] = {{"bad", 12}, {"total", 120}, {"first", 12}, {"reason", 3}, {"value", nullptr}};
  facts["weights"] = {{"bad", 0}, {"total", 4}};
  facts["nan"] = {{"command", "python a.py"}};
  const json sample = {{"dataset_index", 93}, {"batch", 3}, {"row", 3}, {"likely", true}};
  facts["sample"] = sample;
  const char* itself = "that row of the batch holds NaN or Inf itself: look at what makes it";
  EXPECT_FALSE(says(diagnose(facts), itself)) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "0/0")) << all(diagnose(facts));
  facts["sample"]["by"] = "rows";
  EXPECT_TRUE(says(diagnose(facts), itself)) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "0/0, as a rule")) << all(diagnose(facts));
}

// What is rounded up has no place 0, or one more at the end; the last part of a cut is another thing.
TEST(AdviceSides, APartThatWasRoundedUp) {
  json facts = facts_of("index_select.index", 50, 50);
  facts["computed"] = {
      {"name", "i"}, {"text", "torch.ceil(n * torch.rand(1)).long()"}, {"line", 46}, {"by", "ceil"}};
  EXPECT_TRUE(says(diagnose(facts), "ceil gives 1 to n")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "in the last part")) << all(diagnose(facts));
  facts["computed"]["text"] = "torch.round((x - x0) / h).long()";
  EXPECT_TRUE(says(diagnose(facts), "floor gives 0 to n - 1")) << all(diagnose(facts));
  facts["computed"]["text"] = "torch.floor((x - x0) / h).long()";
  EXPECT_TRUE(says(diagnose(facts), "in the last part")) << all(diagnose(facts));
}

// Labels 10, 20 and 30 of classes that the program counts.
TEST(AdviceSides, CountedClassesWhoseNumbersHaveGaps) {
  json facts = facts_of("nll_loss_forward.target", 10, 3, {{"layer", layer("head", "out_features", 3)}});
  facts["scan"].update({{"bad", 8}, {"total", 8}, {"min", 10}, {"max", 30}});
  facts["values"] = {{10, 4}, {20, 2}, {30, 2}};
  facts["made"] =
      json::array({{{"text", "n_classes=len(self.classes_)"}, {"file", "/a/tab.py"}, {"line", 60}}});
  facts["seen"] = {{"min", 10}, {"max", 30}, {"count", 8}, {"source", "calls"}, {"here", 3}, {"gap", 0}};
  const Finding found = diagnose(facts);
  EXPECT_FALSE(says(found, "too low")) << all(found);
  EXPECT_TRUE(says(found, "they have no more than 3 different ones, with gaps")) << all(found);
}

// A table of positions that is computed and kept: of any length, and no text is to be cut for it.
TEST(AdviceSides, ACachedTableOfPositions) {
  json facts = facts_of("index.indices", 48, 48, {{"table", "position"}});
  facts["scan"].update({{"lo", -48}, {"bad", 13}, {"total", 61}, {"min", 0}, {"max", 60}});
  facts["tensor"]["shape"] = {1, 61};
  EXPECT_TRUE(says(diagnose(facts), "truncate to 48")) << all(diagnose(facts));
  facts["indexed"] = {
      {"name", "self.cos_cached"}, {"text", "emb.cos()"}, {"file", "/a/rotary.py"}, {"line", 22}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().starts_with("look at `self.cos_cached = emb.cos()` (rotary.py:22)"))
      << all(found);
  EXPECT_FALSE(says(found, "truncate")) << all(found);
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

// A layer that is called twice: the index was right for what it was given the first time.
TEST(AdviceSides, TheSameIndexWasRightBefore) {
  json facts = facts_of("index_select.index", 16, 16);
  facts["scan"].update({{"bad", 882}, {"total", 942}, {"min", 0}, {"max", 205}});
  EXPECT_TRUE(says(diagnose(facts), "look at where")) << all(diagnose(facts));
  facts["fits"] = {{"shape", {206, 24}}};
  const Finding found = diagnose(facts);
  EXPECT_EQ(
      found.fix.front(),
      "an earlier call of this line took the same index (942 numbers, up to 205) for [206, 24]: look at "
      "what is indexed here, rather than at the index");
  EXPECT_FALSE(says(found, "look at where")) << all(found);
}

// As long as there are places: a length is no place.
TEST(AdviceSides, ALengthIsNoPlace) {
  json facts = facts_of("index_select.index", 510, 510);
  facts["scan"].update({{"bad", 1}, {"total", 2}, {"min", 73}, {"max", 510}});
  facts["assigned"] = {{"name", "lengths"},
                       {"text", "torch.tensor([len(t) for t in tokens])"},
                       {"file", "/a/main.py"},
                       {"line", 72}};
  facts["indexed"] = {{"name", "pack"}, {"text", "load()"}, {"file", "/a/main.py"}, {"line", 66}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "a length counts from 1, and places from 0")) << all(found);
  EXPECT_FALSE(says(found, "what is indexed is `pack = load()` (main.py:66), with 510 places")) << all(found);
  facts["scan"]["value"] = 512;
  EXPECT_FALSE(says(diagnose(facts), "a length counts from 1")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "what is indexed is `pack = load()` (main.py:66), with 510 places"))
      << all(diagnose(facts));
}

// One of many that lies beyond was not moved with the others.
TEST(AdviceSides, AFewBeyondTheEndAreNotMovedAsAWhole) {
  json facts = facts_of("embedding.indices", 36, 36);
  facts["scan"].update({{"bad", 60}, {"total", 80}, {"min", 19}, {"max", 36}});
  facts["seen"] = {{"min", 19}, {"max", 36}, {"count", 80}, {"source", "calls"}, {"here", 18}};
  EXPECT_TRUE(says(diagnose(facts), "all numbers from 19 to 36 occur")) << all(diagnose(facts));
  facts["scan"]["bad"] = 1;
  EXPECT_FALSE(says(diagnose(facts), "all numbers from 19 to 36 occur")) << all(diagnose(facts));
}

// 18 - 23 in numbers of 8 bits without a sign.
TEST(AdviceSides, DifferencesThatHaveWrapped) {
  json facts = facts_of("embedding.indices", 251, 19);
  facts["scan"].update({{"bad", 46}, {"total", 64}, {"min", 0}, {"max", 255}});
  facts["values"] = json::array({json::array({251, 40}), json::array({255, 6})});
  facts["seen"] = {{"min", 0}, {"max", 255}, {"count", 64}, {"source", "calls"}, {"here", 12}, {"gap", 3}};
  EXPECT_TRUE(says(diagnose(facts), "251 to 255 are also what -5 to -1 become in uint8"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "which of the two is meant")) << all(diagnose(facts));
  facts["values"][0][0] = 120;
  EXPECT_FALSE(says(diagnose(facts), "become in uint8")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "which of the two is meant")) << all(diagnose(facts));
  facts["values"] = json::array({json::array({251, 4}), json::array({255, 6})});
  EXPECT_FALSE(says(diagnose(facts), "become in uint8")) << "others are not known\n" << all(diagnose(facts));
}

// `nn.Embedding(n // 16, dim)`, of ids that are divided alike: the last, incomplete group has no row.
TEST(AdviceSides, ADivisionThatDropsItsRest) {
  json facts = facts_of("embedding.indices", 62, 62);
  facts["scan"].update({{"bad", 1}, {"total", 64}, {"min", 0}, {"max", 62}});
  facts["made"] =
      json::array({{{"text", "n // size"}, {"file", "/a/net.py"}, {"line", 42}, {"computed", true}}});
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "`n // size` (net.py:42) leaves the rest of the division out")) << all(found);
  EXPECT_FALSE(says(found, "put together")) << all(found);
  facts["made"][0]["text"] = "days // 7 + 1";
  EXPECT_FALSE(says(diagnose(facts), "leaves the rest")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "put together")) << "it has no parts\n" << all(diagnose(facts));
  facts["made"][0]["text"] = "n * size";
  EXPECT_TRUE(says(diagnose(facts), "put together")) << all(diagnose(facts));
}

// Of two classes the third number is none, as a rule; of twenty the size may be one too small.
TEST(AdviceSides, TwoClassesAreMeant) {
  const auto whole = [](std::int64_t classes) {
    json facts = facts_of("nll_loss_forward.target", classes, classes,
                          {{"layer", layer("fc", "out_features", classes)}});
    facts["scan"].update({{"bad", 5}, {"total", 20}, {"min", 0}, {"max", classes}});
    facts["seen"] = {
        {"min", 0}, {"max", classes}, {"count", 160}, {"source", "dataset"}, {"kinds", classes + 1}};
    return diagnose(facts);
  };
  EXPECT_TRUE(says(whole(20), "out_features=21")) << all(whole(20));
  EXPECT_FALSE(says(whole(2), "out_features=3")) << all(whole(2));
  EXPECT_TRUE(says(whole(2), "which of the two is meant: `fc` has 2 outputs")) << all(whole(2));
}

// Squared distances by the expanded form: what is left of a 0.
TEST(AdviceSides, AWeightThatRoundingHasMadeNegative) {
  json facts = facts_of("multinomial.self", 0, 0);
  facts["scan"].update({{"bad", 1}, {"total", 1200}, {"min", -2.4e-7}, {"max", 2.96}, {"value", -2.4e-7}});
  facts["scan"]["is_float"] = true;
  EXPECT_TRUE(says(diagnose(facts), ".clamp(min=0) of it")) << all(diagnose(facts));
  facts["scan"].update({{"min", -0.01}, {"value", -0.01}});
  EXPECT_FALSE(says(diagnose(facts), "clamp(min=0)")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "below 0, and none may be")) << all(diagnose(facts));
}

// A number of the vocabulary that is kept for padding: positions begin behind it, and no text is to be cut
// for that.
TEST(AdviceSides, ALargeNumberForPaddingLeavesFewRows) {
  const auto of = [](std::int64_t offset) {
    return diagnose(facts_of(
        "embedding.indices", 386, 386,
        {{"table", "position"}, {"position", {{"rows", 386}, {"offset", offset}, {"length", 500}}}}));
  };
  EXPECT_TRUE(says(of(2), "truncate to 384")) << all(of(2));
  const Finding found = of(258);
  EXPECT_TRUE(says(found, "258 of 386 rows stand before the first position, and leave 128 for a text"))
      << all(found);
  EXPECT_FALSE(says(found, "truncate")) << all(found);
}

}  // namespace
}  // namespace trapline::diagnose
