// An edit that silences a fault is advised only where the data or the source speak for it; without that, both
// readings are said, and where to look first.
#include <array>

#include "advice.hpp"

namespace trapline::diagnose {
namespace {

TEST(AdviceEvidence, SignedClassesAreOnlyWhereNoLabelIsZero) {
  json facts = facts_of("nll_loss_forward.target", -1, 2, {{"scan", {{"max", 1}, {"also", -100}}}});
  const char* words = "if -1 and 1 are the two classes";
  EXPECT_FALSE(says(diagnose(facts), words)) << "nothing tells whether a 0 is there";
  facts["kinds"] = {{"whole", true}, {"zero", false}, {"one", true}};
  EXPECT_TRUE(says(diagnose(facts), words)) << all(diagnose(facts));
  facts["kinds"]["zero"] = true;
  EXPECT_FALSE(says(diagnose(facts), words)) << all(diagnose(facts));
  facts["kinds"]["zero"] = false;  // in this call; the whole data set has one
  facts["seen"] = {{"min", -1}, {"max", 1}, {"count", 400}, {"source", "dataset"}, {"kinds", 3}};
  EXPECT_FALSE(says(diagnose(facts), words)) << all(diagnose(facts));
}

TEST(AdviceEvidence, MinusOneMayBeALookUpThatFoundNothing) {
  json facts = facts_of("nll_loss_forward.target", -1, 9);
  const Finding one = diagnose(facts);
  EXPECT_TRUE(one.fix.front().starts_with("if a look-up that found nothing gave it")) << all(one);
  EXPECT_TRUE(says(one, "if -1 marks what is not to count")) << all(one);
  facts["tensor"]["shape"] = {2, 8, 8};  // of a picture
  facts["index"] = {0, 0, 3};
  const Finding mask = diagnose(facts);
  EXPECT_FALSE(says(mask, "look-up")) << all(mask);
  const Finding places = diagnose(facts_of("scatter.index", -1, 9, {{"args", {{"dim", 0}}}}));
  EXPECT_TRUE(says(places, "what a search gives that found nothing")) << all(places);
  EXPECT_TRUE(says(places, "if it marks what is not to count")) << all(places);
}

// One label in 2,000, of 4 classes: no larger head is spoken of.
TEST(AdviceEvidence, AClassThatHardlyARecordHasIsNone) {
  json facts = facts_of("nll_loss_forward.target", 9, 4);
  facts["layer"] = layer("head", "out_features", 4);
  EXPECT_TRUE(says(diagnose(facts), "if there are meant to be more than 4 classes")) << all(diagnose(facts));
  facts["seen"] = {{"min", 0},   {"max", 9},   {"count", 2000}, {"source", "dataset"},
                   {"kinds", 6}, {"beyond", 2}};
  EXPECT_FALSE(says(diagnose(facts), "more than 4 classes")) << all(diagnose(facts));
}

TEST(AdviceEvidence, ANumberThatARecordHoldsIsNoUnwrittenMemory) {
  const std::int64_t key = 76561198012345678;
  json facts = facts_of("embedding.indices", key, 5000);
  EXPECT_TRUE(says(diagnose(facts), "hold garbage until written")) << all(diagnose(facts));
  facts["sample"] = {{"dataset_index", 12}, {"row", 3}};
  const Finding found = diagnose(facts);
  EXPECT_FALSE(says(found, "garbage")) << all(found);
  EXPECT_NE(found.summary.find("a raw number (a hash, a time, a key)"), std::string::npos) << found.summary;
  EXPECT_TRUE(says(found, "raw numbers are numbered first, from 0")) << all(found);
  EXPECT_TRUE(says(found, "sample 12")) << all(found);
}

TEST(AdviceEvidence, WhichNumbersTwoClassesHaveIsAskedOfAllOfTheData) {
  json facts = facts_of("binary_cross_entropy.target", 2, 1);
  facts["scan"].update({{"value", 2.0}, {"min", 1.0}, {"max", 2.0}, {"is_float", true}, {"bad", 3}});
  facts["values"] = json::array({json::array({2.0, 3})});
  EXPECT_TRUE(says(diagnose(facts), "if no target of the data is 0 (none of these 4 is)"))
      << all(diagnose(facts));
}

TEST(AdviceEvidence, ADifferenceIsLookedAtFirst) {
  json facts = facts_of("binary_cross_entropy.self", 0, 1);
  facts["scan"].update({{"value", -0.25}, {"min", -0.25}, {"max", 0.75}, {"is_float", true}});
  facts["squashed"] = "difference";
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().starts_with("find what is subtracted there")) << all(found);
}

// Nobody knows that exp() made it.
TEST(AdviceEvidence, AnInfiniteWeightIsLookedAtFirst) {
  json facts = facts_of("multinomial.self", 0, 1);
  facts["scan"].update({{"value", "inf"}, {"is_float", true}, {"reason", 5}});
  const Finding found = diagnose(facts);
  EXPECT_FALSE(says(found, "pass softmax output")) << all(found);
}

// COCO's categories have gaps; one stray label is none of them.
TEST(AdviceEvidence, OneStrayLabelSpeaksForNoListWithGaps) {
  json facts = facts_of("gather.index", 90, 80, {{"table", "labels"}});
  EXPECT_FALSE(says(diagnose(facts), "has gaps")) << all(diagnose(facts));
  facts["values"] = json::array({json::array({90, 1}), json::array({85, 1})});
  EXPECT_TRUE(says(diagnose(facts), "has gaps")) << all(diagnose(facts));
}

}  // namespace
}  // namespace trapline::diagnose
