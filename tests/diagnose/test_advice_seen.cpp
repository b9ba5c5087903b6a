// Advice that what was seen before the fault, or in the batch around it, speaks for or against.
#include <limits>

#include "advice.hpp"

namespace trapline::diagnose {
namespace {

const json kPadding = {
    {"batch", 3}, {"row", 3}, {"dataset_index", 15}, {"loader", "loader"}, {"by", "padding"}};

bool sends_to_sample(const Finding& finding) { return says(finding, "look at sample"); }

TEST(AdvicePadding, AnIndexThatTheCollateFunctionFilledIn) {
  const Finding finding = diagnose(facts_of("index.indices", 7, 7, {{"sample", kPadding}}));
  EXPECT_TRUE(finding.summary.ends_with("; 7 is what short rows are filled with")) << finding.summary;
  EXPECT_TRUE(says(finding, "with a number that is valid")) << all(finding);
  EXPECT_FALSE(says(finding, "larger") || sends_to_sample(finding)) << all(finding);
}

TEST(AdvicePadding, IsLeftOutByTheLossItself) {
  const Finding finding = diagnose(facts_of("scatter.index", -100, 29, {{"sample", kPadding}}));
  EXPECT_TRUE(says(finding, "or fill with the number that the loss itself leaves out")) << all(finding);
  EXPECT_FALSE(says(finding, "a class of their own") || sends_to_sample(finding)) << all(finding);
}

TEST(AdvicePadding, IsNoClass) {
  const Finding finding = diagnose(facts_of(
      "nll_loss_forward.target", 9, 9, {{"sample", kPadding}, {"layer", layer("head", "out_features", 9)}}));
  EXPECT_EQ(
      finding.fix.front(),
      "fill them with -100 where the collate function does it, which the loss leaves out, or give the loss "
      "what they are filled with: ignore_index=9");
  EXPECT_FALSE(says(finding, "outputs")) << all(finding);
}

TEST(AdvicePadding, OfPositionsIsACountOfTheMask) {
  json facts = facts_of("embedding.indices", -1, 32, {{"table", "position"}});
  facts["scan"].merge_patch({{"min", -1}, {"max", 16}, {"bad", 2}, {"total", 20}});
  EXPECT_TRUE(says(diagnose(facts), "position_ids.masked_fill(attention_mask == 0, 0)"))
      << all(diagnose(facts));
}

TEST(AdviceSeen, ASigmoidThatWasThereIsLookedFor) {
  json facts = facts_of("binary_cross_entropy.self", 0, 1, {{"squashed", "raw"}, {"passed", 14}});
  facts["scan"].merge_patch({{"value", -0.25}, {"min", -0.25}, {"max", 0.5}, {"is_float", true}});
  Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("the sigmoid is missing, in this call and not before"))
      << finding.summary;
  EXPECT_TRUE(says(finding, "the last 14 calls before it, of the same line, were given values in [0, 1]"));
  EXPECT_FALSE(says(finding, "with_logits")) << "the calls before would have two of them";
  facts.erase("passed");
  finding = diagnose(facts);
  EXPECT_TRUE(says(finding, "with_logits")) << all(finding);
}

TEST(AdviceSeen, LabelsOfCallsAreTheLastOnes) {
  const json seen = {{"min", 0}, {"max", 12}, {"count", 80}, {"source", "calls"}};
  const Finding finding = diagnose(facts_of("nll_loss_forward.target", 12, 12,
                                            {{"seen", seen}, {"layer", layer("head", "out_features", 12)}}));
  EXPECT_TRUE(says(finding, "12 is the highest of the last 80 labels seen")) << all(finding);
  EXPECT_FALSE(says(finding, "counted from 1")) << "a 0 is in this call" << all(finding);
}

TEST(AdviceSeen, SoFewIdsWithoutAZeroDoNotCountFromOne) {
  json facts = facts_of("index_select.index", 240, 240);
  facts["scan"].merge_patch({{"min", 1}, {"max", 240}, {"total", 150}});
  facts["seen"] = {{"min", 1}, {"max", 240}, {"count", 300}, {"source", "calls"}};
  EXPECT_FALSE(says(diagnose(facts), "counted from 1")) << all(diagnose(facts));
  facts["seen"]["count"] = 800;
  EXPECT_FALSE(says(diagnose(facts), "counted from 1"))
      << "computed, or cut to each batch" << all(diagnose(facts));
  facts["sample"] = {{"dataset_index", 3}};
  EXPECT_TRUE(says(diagnose(facts), "no 0 among the last 800 seen")) << all(diagnose(facts));
}

TEST(AdviceSeen, OfSeveralModelsAsOneItIsToldWhichIndexIsTheModels) {
  json facts = facts_of("embedding.indices", 72, 57);
  facts["members"] = 4;
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("; vmap runs 4 models as one, the first index is that of the model"))
      << finding.summary;
  facts["members"] = 1;
  EXPECT_EQ(diagnose(facts).summary.find("vmap"), std::string::npos);
}

TEST(AdviceSeen, ARowOfWeightsIsCountedAsARow) {
  json facts = facts_of("multinomial.self", 0, 0);
  facts["tensor"]["shape"] = {8, 60};
  facts["index"] = {2, 0};
  facts["scan"].merge_patch({{"reason", 6}, {"bad", 1}, {"total", 480}, {"is_float", true}});
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.element->index, std::vector<std::int64_t>{2});
  EXPECT_FALSE(finding.element->value);
  EXPECT_EQ(finding.element->total, 8);
}

TEST(AdviceSeen, ALayerOfThatSizeAloneIsNoneOfWhatIsIndexed) {
  json table = layer("encoder.positions", "num_embeddings", 72);
  table["certain"] = false;
  const Finding finding = diagnose(facts_of("gather.index", 87, 72, {{"layer", table}}));
  EXPECT_FALSE(finding.layer);
  EXPECT_FALSE(says(finding, "encoder.positions")) << all(finding);
  EXPECT_TRUE(diagnose(facts_of("gather.index", 87, 72, {{"layer", table}, {"table", "labels"}})).layer);
}

TEST(AdviceSeen, IdsThatTheProgramMakesAreLookedAtFirst) {
  json facts = facts_of("embedding.indices", 23, 23, {{"layer", layer("embedding", "num_embeddings", 23)}});
  facts["scan"].merge_patch({{"bad", 4}, {"total", 4}, {"min", 23}});
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("look at where")) << all(diagnose(facts));
  facts["sample"] = {{"batch", 3}, {"row", 1}};
  EXPECT_TRUE(diagnose(facts).fix.back().starts_with("see which of the two is meant"))
      << all(diagnose(facts));
}

TEST(AdviceSeen, MinusOneMayBeASearchThatFoundNothing) {
  json facts = facts_of("gather.index", -1, 38);
  facts["scan"].merge_patch({{"total", 38}, {"min", -1}, {"max", 37}});
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("-1 may be what a search gives that found nothing"))
      << all(diagnose(facts));
}

TEST(AdviceSeen, BothSidesOfAMasksClassesAreNoLackOfClasses) {
  json facts = facts_of("one_hot.self", 6, 6);
  facts["tensor"]["shape"] = {4, 32, 32};
  facts["scan"].merge_patch({{"bad", 5}, {"total", 4096}, {"min", -1}, {"max", 6}});
  facts["values"] = json::array({json::array({6, 3}), json::array({-1, 2})});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(says(finding, "mode=\"nearest\" keeps classes")) << all(finding);
  EXPECT_FALSE(says(finding, "num_classes")) << all(finding);
}

TEST(AdviceSeen, WeightsOfWhichAFewAreNegativeAreNoLogits) {
  json facts = facts_of("multinomial.self", 0, 0);
  facts["scan"].merge_patch({{"value", -0.09},
                             {"min", -0.09},
                             {"max", 4.5},
                             {"bad", 13},
                             {"total", 96},
                             {"reason", 5},
                             {"is_float", true}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("of the probabilities has a negative one")) << finding.summary;
  EXPECT_TRUE(finding.fix.front().starts_with("look at where the input is computed")) << all(finding);
  EXPECT_FALSE(says(finding, "logits")) << all(finding);
}

// 192 different ones of 193 have one gap: as well as without gaps they may end one too far.
TEST(AdviceSeen, OneGapAmongManyIsNoReasonToNumberThemAnew) {
  json ids = facts_of("embedding.indices", 192, 192, {{"scan", {{"total", 96}}}});
  ids["layer"] = layer("bag", "num_embeddings", 192);
  ids["seen"] = {{"min", 0}, {"max", 192}, {"count", 3600}, {"source", "dataset"}, {"kinds", 192}};
  EXPECT_FALSE(says(diagnose(ids), "without gaps")) << all(diagnose(ids));
  ids["seen"]["max"] = 260;
  EXPECT_TRUE(says(diagnose(ids), "without gaps")) << all(diagnose(ids));
}

// A range that is cut into parts is not counted from 1, whatever numbers are missing.
TEST(AdviceSeen, WhatADivisionCutIsNotCountedFromOne) {
  json index = facts_of("index.indices", 10, 10, {{"scan", {{"total", 48}, {"bad", 4}, {"min", 2}}}});
  index["seen"] = {{"min", 1}, {"max", 10}, {"count", 288}, {"source", "dataset"}, {"kinds", 10}};
  index["sample"] = {{"dataset_index", 119}, {"batch", 7}, {"row", 1}};
  EXPECT_TRUE(says(diagnose(index), "counted from 1")) << all(diagnose(index));
  index["computed"] = {
      {"name", "decile"}, {"text", "(rsi // 10).astype('int64')"}, {"line", 38}, {"file", "a.py"}};
  index["computed"]["of_sample"] = true;
  EXPECT_FALSE(says(diagnose(index), "counted from 1")) << all(diagnose(index));
}

// The weights were divided last by their own sum.
TEST(AdviceSeen, TheDivisionThatMadeWeightsNaN) {
  json facts = facts_of("multinomial.self", 0, 1, {{"weights", {{"bad", 0}, {"total", 6}}}});
  facts["scan"] = {{"bad", 37},      {"total", 296}, {"first", 37},
                   {"value", "nan"}, {"reason", 3},  {"is_float", true}};
  facts["nan"] = {{"situation", "inference"}, {"command", "python main.py"}};
  EXPECT_TRUE(says(diagnose(facts), "check the logits: assert (logits < float('inf')).all()"));
  facts["computed"] = {{"name", "rest"}, {"text", "rest / rest.sum(dim=-1, keepdim=True)"}, {"line", 23}};
  EXPECT_EQ(
      diagnose(facts).fix.front(),
      "look at `rest = rest / rest.sum(dim=-1, keepdim=True)` (line 23): where what it is divided by is 0, a "
      "row of zeros as a rule, 0/0 is NaN; where that has overflowed (a large power, exp), Inf/Inf is");
  EXPECT_FALSE(says(diagnose(facts), "logits")) << all(diagnose(facts));
}

// A place among rows * width, divided by less than the width: a limit would hide the divisor.
TEST(AdviceSeen, AFlatPlaceIsDividedByTheWidthOfARow) {
  json index = facts_of("index_select.index", 5, 5, {{"scan", {{"total", 5}, {"max", 5}}}});
  index["computed"] = {{"name", "beam"}, {"text", "flat // len(vocab)"}, {"line", 15}};
  EXPECT_TRUE(says(diagnose(index), "more than `len(vocab)`")) << all(diagnose(index));
  EXPECT_FALSE(says(diagnose(index), "very end")) << all(diagnose(index));
  index["computed"]["text"] = "(db // 6).long()";
  EXPECT_TRUE(says(diagnose(index), "its very end gives 5")) << all(diagnose(index));
}

TEST(AdviceSeen, WhatWasInfiniteBeforeTheCastWasNotMadeSo) {
  json facts = facts_of("embedding.indices", std::numeric_limits<std::int64_t>::min(), 16);
  facts["nan_cast"] = {
      {"bad", 1}, {"value", "inf"}, {"frame", {{"file", "a.py"}, {"line", 5}, {"code", "x.long()"}}}};
  facts["sample"] = {{"dataset_index", 37}, {"batch", 5}, {"row", 0}, {"likely", true}, {"by", "row"}};
  EXPECT_TRUE(says(diagnose(facts), "what the batch holds is finite")) << all(diagnose(facts));
  facts["nan"] = {{"input", {{"name", "bars"}, {"index", {1, 1}}, {"value", "inf"}}}};
  EXPECT_FALSE(says(diagnose(facts), "what the batch holds is finite")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "stands in `bars` already")) << all(diagnose(facts));
}

// One row more would take what is missing for a number of its own.
TEST(AdviceSeen, WhatASearchMadeOfNanNeedsNoRow) {
  json facts = facts_of("embedding.indices", 7, 7, {{"scan", {{"total", 48}, {"min", 2}, {"max", 7}}}});
  facts["computed"] = {
      {"name", "band"}, {"text", "bucketize(rh, edges) - 1"}, {"line", 15}, {"by", "bucketize"}};
  EXPECT_TRUE(says(diagnose(facts), "n + 1 buckets")) << all(diagnose(facts));
  facts["nan"] = {{"input", {{"name", "rh"}, {"index", {1}}, {"value", "nan"}}}};
  const Finding finding = diagnose(facts);
  EXPECT_EQ(
      finding.fix.front(),
      "rh[1] is NaN: mend it, or leave it out, before the index is computed of it (a search among edges "
      "puts NaN behind the last one)");
  EXPECT_FALSE(says(finding, "buckets")) << all(finding);
  EXPECT_FALSE(speaks_of_size(finding)) << all(finding);
}

// -100 is left out by the loss: it lies on no side.
TEST(AdviceSeen, AnIgnoredLabelIsOnNoSide) {
  json label =
      facts_of("nll_loss_forward.target", 2, 2, {{"scan", {{"total", 56}, {"min", -100}, {"max", 2}}}});
  label["tensor"]["shape"] = {4, 1, 14};
  EXPECT_NE(diagnose(label).summary.find("both sides"), std::string::npos) << all(diagnose(label));
  label["scan"]["also"] = -100;
  EXPECT_EQ(diagnose(label).summary.find("both sides"), std::string::npos) << all(diagnose(label));
  label["scan"]["also"] = 255;
  label["scan"].update({{"min", -1}, {"max", 255}, {"value", -1}});
  EXPECT_EQ(diagnose(label).summary.find("both sides"), std::string::npos) << all(diagnose(label));
}

// 255 of an octave is -1: left out, the finest of all would be gone.
TEST(AdviceSeen, AByteOfMinusOneIsNoMark) {
  const json index = facts_of("index.indices", 255, 6, {{"scan", {{"total", 40}, {"max", 255}}}});
  EXPECT_NE(diagnose(index).summary.find("255 may be an ignore label"), std::string::npos)
      << all(diagnose(index));
  EXPECT_TRUE(says(diagnose(index), "if 255 is -1 as a byte (uint8, `& 255`), give it its sign back"));
  EXPECT_TRUE(says(diagnose(index),
                   "marks what is not to count, all that goes with such elements has to be left out"));
}

TEST(AdviceSeen, OneLessARunningSum) {
  json facts = facts_of("binary_cross_entropy.self", 0, 1);
  facts["scan"] = {{"bad", 1},         {"total", 8},  {"first", 0}, {"value", -0.2},
                   {"is_float", true}, {"min", -0.2}, {"max", 0.9}};
  facts["squashed"] = "one_less_sum";
  EXPECT_TRUE(says(diagnose(facts), "torch.cumprod(1 - hazard, dim)")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "with_logits")) << all(diagnose(facts));
}

}  // namespace
}  // namespace trapline::diagnose
