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
  EXPECT_FALSE(says(mask, "str.find")) << all(mask);
  EXPECT_TRUE(says(mask, "if -1 marks what is not to count (on purpose, and is not what a look-up"))
      << all(mask);
  const Finding places = diagnose(facts_of("scatter.index", -1, 9, {{"args", {{"dim", 0}}}}));
  EXPECT_TRUE(says(places, "what a search gives that found nothing")) << all(places);
  EXPECT_TRUE(says(places, "if -1 in the index marks what is not to count")) << all(places);
}

// One label in 2,000, of 4 classes: no larger head is spoken of.
TEST(AdviceEvidence, AClassThatHardlyARecordHasIsNone) {
  json facts = facts_of("nll_loss_forward.target", 9, 4);
  facts["layer"] = layer("head", "out_features", 4);
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
  facts["seen"] = {{"min", 0},   {"max", 9},   {"count", 2000}, {"source", "dataset"},
                   {"kinds", 6}, {"beyond", 2}};
  EXPECT_FALSE(speaks_of_size(diagnose(facts))) << all(diagnose(facts));
}

TEST(AdviceEvidence, ANumberThatARecordHoldsIsNoUnwrittenMemory) {
  const std::int64_t key = 76561198012345678;
  json facts = facts_of("embedding.indices", key, 5000);
  EXPECT_TRUE(says(diagnose(facts), "hold garbage until written")) << all(diagnose(facts));
  facts["sample"] = {{"dataset_index", 12}, {"row", 3}};
  const Finding found = diagnose(facts);
  EXPECT_FALSE(says(found, "garbage")) << all(found);
  EXPECT_NE(found.summary.find("a raw number (a hash, a time, a key)"), std::string::npos) << found.summary;
  EXPECT_FALSE(says(found, "numbered first")) << "the others are numbers already: " << all(found);
  EXPECT_TRUE(says(found, "sample 12")) << all(found);
  facts["scan"].update({{"bad", 4}, {"total", 4}});
  EXPECT_TRUE(says(diagnose(facts), "raw numbers are numbered first, from 0")) << all(diagnose(facts));
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

// Seven votes of five are 1.4, which is 357 / 255 as well.
TEST(AdviceEvidence, AShareOfVotesIsNoPixel) {
  json facts = facts_of("binary_cross_entropy.target", 2, 1, {{"tensor", {{"shape", {20, 5}}}}});
  facts["scan"].update(
      {{"value", 1.4}, {"min", 0.0}, {"max", 1.4}, {"is_float", true}, {"bad", 2}, {"total", 100}});
  facts["values"] = json::array({json::array({1.4, 2})});
  EXPECT_EQ(all(diagnose(facts)).find("255"), std::string::npos) << all(diagnose(facts));
  facts["tensor"]["shape"] = {1, 20, 5};
  EXPECT_NE(all(diagnose(facts)).find("357 / 255"), std::string::npos) << all(diagnose(facts));
}

// Spelled otherwise than in the list: to leave the rows out hides it.
TEST(AdviceEvidence, WhatIsNoneOfTheCategoriesIsNotLeftOut) {
  json facts = facts_of("nll_loss_forward.target", -1, 9, {{"sample", {{"dataset_index", 12}, {"row", 3}}}});
  facts["codes"] = {{"text", "pd.Categorical(tag, tags).codes"}, {"line", 8}, {"of", "missing"}};
  EXPECT_TRUE(says(diagnose(facts), "ignore_index=-1")) << all(diagnose(facts));
  facts["codes"]["of"] = "either";
  const Finding found = diagnose(facts);
  EXPECT_NE(found.summary.find("a value that is missing or none of the categories"), std::string::npos);
  EXPECT_TRUE(found.fix.front().starts_with("look at sample 12")) << all(found);
  EXPECT_FALSE(says(found, "ignore_index")) << all(found);
  EXPECT_TRUE(says(found, "is to be corrected or added")) << all(found);
}

TEST(AdviceEvidence, TheNumberOfClassesItselfIsAClassMore) {
  json facts = facts_of("nll_loss_forward.target", 4, 4, {{"layer", layer("cls_head", "out_channels", 4)}});
  facts["filled"] = {{"text", "torch.full((n,), self.num_classes)"}, {"file", "/a/net.py"}, {"line", 7}};
  const Finding found = diagnose(facts);
  EXPECT_EQ(found.cause, Cause::kNumClassesMismatch);
  EXPECT_NE(found.summary.find("(net.py:7) gives the number of classes itself"), std::string::npos)
      << found.summary;
  EXPECT_TRUE(says(found, "give `cls_head` one output more than that number")) << all(found);
  EXPECT_FALSE(speaks_of_size(found)) << all(found);
  facts["values"] = json::array({json::array({4, 1}), json::array({6, 1})});
  facts["scan"]["max"] = 6;
  EXPECT_FALSE(says(diagnose(facts), "one output more")) << "others are wrong as well";
}

// With another vocab_size the tokenizer would learn as many words more.
TEST(AdviceEvidence, ANumberThatDecidesMoreIsNotChanged) {
  json facts = facts_of("embedding.indices", 320, 320, {{"layer", layer("wte", "num_embeddings", 320)}});
  facts["table"] = "token";
  facts["counted"] = {{"count", 323}, {"of", "tok.get_vocab_size()"}};
  facts["made"] = {{{"text", "cfg.vocab_size"}, {"file", "/a/net.py"}, {"line", 91}},
                   {{"text", "vocab_size=320"}, {"file", "/a/net.py"}, {"line", 23}}};
  EXPECT_TRUE(says(diagnose(facts), "by `vocab_size=320` (net.py:23)")) << all(diagnose(facts));
  facts["made"][1]["read"] = {{"file", "/a/net.py"}, {"line", 46}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(
      says(found, "by `vocab_size=320` (net.py:23), which line 46 reads, too: see whether that is to"))
      << all(found);
}

// `range(n_max + 1)` makes the data, too.
TEST(AdviceEvidence, ANumberThatMakesTheLabelsMayMoveWithThem) {
  json facts = facts_of("nll_loss_forward.target", 5, 5, {{"layer", layer("classifier", "out_features", 5)}});
  facts["counted"] = {{"count", 6}, {"of", "the number of states"}};
  facts["made"] = {{{"text", "n_classes"}, {"file", "/a/net.py"}, {"line", 32}},
                   {{"text", "n_max=5"}, {"file", "/a/net.py"}, {"line", 55}}};
  facts["made"][1]["read"] = {{"file", "/a/net.py"}, {"line", 15}};
  EXPECT_TRUE(
      says(diagnose(facts), "by `n_max=5` (net.py:55) unless labels are made by it, too: line 15 reads it"))
      << all(diagnose(facts));
}

// A label for each anchor: the program matches them, and no data are known to be at fault.
TEST(AdviceEvidence, LabelsOfNoRecordAreNotCorrectedInTheData) {
  json facts = facts_of("nll_loss_forward.target", 4, 4,
                        {{"scan", {{"bad", 6}, {"total", 1536}, {"min", 0}, {"max", 4}}}});
  facts["op"] = "cross_entropy";
  facts["variable"] = {{"name", "labels"}, {"index", {2, 37}}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "look at where `labels` is made: 6 of 1536 are outside [0, 4)")) << all(found);
  EXPECT_FALSE(says(found, "correct the labels")) << all(found);
  EXPECT_FALSE(says(found, "if they are positions")) << all(found);
  facts["sample"] = {{"dataset_index", 3}};
  EXPECT_TRUE(says(diagnose(facts), "if 4 is not a class, correct the labels")) << all(diagnose(facts));
}

// All 24 are the size itself: what makes them may read it, and would grow with it.
TEST(AdviceEvidence, AnIdThatIsTheSizeIsNotGivenMoreByTheNumberBehind) {
  json facts = facts_of("embedding.indices", 64, 64,
                        {{"layer", layer("emb.0", "num_embeddings", 64)},
                         {"scan", {{"bad", 24}, {"total", 344}, {"min", 0}, {"max", 64}}}});
  facts["made"] = {{{"text", "cfg.codebook_size"}, {"file", "/a/net.py"}, {"line", 64}},
                   {{"text", "codebook_size=64"}, {"file", "/a/net.py"}, {"line", 14}}};
  EXPECT_TRUE(
      says(diagnose(facts), "`emb.0` has 64 rows, by `codebook_size=64` (net.py:14), and 64 is the highest"))
      << all(diagnose(facts));
  facts["counted"] = {{"count", 66}, {"of", "len(tokenizer)"}};
  EXPECT_FALSE(says(diagnose(facts), "unless")) << "counted: " << all(diagnose(facts));
}

TEST(AdviceEvidence, PositionsFromOneAreNoLongSequence) {
  json facts = facts_of("embedding.indices", 6, 6,
                        {{"table", "position"},
                         {"counts_from", 1},
                         {"layer", layer("position", "num_embeddings", 6)},
                         {"scan", {{"bad", 1}, {"total", 6}, {"min", 1}, {"max", 6}}},
                         {"tensor", {{"shape", {6}}}}});
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.summary.ends_with("the 6 positions are counted from 1")) << found.summary;
  EXPECT_TRUE(says(found, "number them from 0")) << all(found);
  EXPECT_FALSE(says(found, "truncate")) << all(found);
  facts["tensor"]["shape"] = {7};
  EXPECT_TRUE(diagnose(facts).summary.ends_with("is too long")) << diagnose(facts).summary;
}

// The others begin at 0: more rows would train on steps that nobody began anew.
TEST(AdviceEvidence, OneRecordThatBeginsBehindTheTableAsksForNoRows) {
  json facts = facts_of("embedding.indices", 119, 100,
                        {{"table", "position"},
                         {"counts_from", 119},
                         {"layer", layer("time", "num_embeddings", 100)},
                         {"scan", {{"bad", 10}, {"total", 320}, {"max", 128}}},
                         {"tensor", {{"shape", {32, 10}}}}});
  facts["index"] = {26, 0};
  EXPECT_TRUE(says(diagnose(facts), "only if they count the steps")) << all(diagnose(facts));
  facts["sample"] = {{"dataset_index", 298}, {"batch", 6}, {"row", 26}};
  EXPECT_FALSE(says(diagnose(facts), "only if they count the steps")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "has to begin anew with each sequence")) << all(diagnose(facts));
}

// A head or a span: the target is as long as there are classes.
TEST(AdviceEvidence, PlacesInASequenceAskForNoOutputs) {
  json facts = facts_of("nll_loss_forward.target", 31, 31, {{"scan", {{"bad", 4}, {"total", 372}}}});
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
  facts["as_long"] = true;
  facts["variable"] = {{"name", "heads"}, {"index", {3, 27}}};
  const Finding found = diagnose(facts);
  EXPECT_FALSE(speaks_of_size(found)) << all(found);
  EXPECT_TRUE(found.fix.front().starts_with("`heads` is as long as there are classes (31)")) << all(found);
}

// An answer's place, counted in characters: `qa_outputs` has two outputs, and the classes are the tokens.
TEST(AdviceEvidence, PlacesInTheIdsAskForNoOutputs) {
  json facts = facts_of("nll_loss_forward.target", 149, 38, {{"scan", {{"bad", 5}, {"total", 8}}}});
  facts["variable"] = {{"name", "start_positions"}, {"index", {0}}};
  facts["ids_as_long"] = "input_ids";
  Finding found = diagnose(facts);
  EXPECT_FALSE(speaks_of_size(found)) << all(found);
  EXPECT_TRUE(found.fix.front().starts_with("a row of `input_ids` is as long as there are classes (38)"))
      << all(found);
  facts["layer"] = layer("head", "out_features", 38);
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
}

// The brightness of a palette's colours.
TEST(AdviceEvidence, PicturesTurnedGreyAskForNoClasses) {
  json facts = facts_of("nll_loss2d_forward.target", 113, 6,
                        {{"scan", {{"bad", 1146}, {"total", 8192}, {"max", 113}}},
                         {"tensor", {{"shape", {8, 32, 32}}}},
                         {"layer", layer("head", "out_channels", 6)}});
  facts["values"] = json::array({json::array({113, 300}), json::array({75, 400}), json::array({14, 446})});
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
  facts["greys"] = true;
  const Finding found = diagnose(facts);
  EXPECT_FALSE(speaks_of_size(found)) << all(found);
  EXPECT_TRUE(found.fix.front().starts_with("if the masks are pictures with a palette")) << all(found);
  EXPECT_TRUE(says(found, "if not, correct it where it is made")) << all(found);
}

// random.randint(0, n_items) gives n_items, too: a row for that would be an item that nobody has.
TEST(AdviceEvidence, ARangeThatHoldsItsEndAsksForNoRow) {
  json facts = facts_of("embedding.indices", 1500, 1500, {{"layer", layer("item", "num_embeddings", 1500)}});
  EXPECT_TRUE(says(diagnose(facts), "rows")) << all(diagnose(facts));
  facts["end"] = {{"text", "random.randint(0, self.n_items)"}, {"file", "ncf.py"}, {"lines", {34, 36}}};
  const Finding found = diagnose(facts);
  EXPECT_EQ(
      found.fix.front(),
      "if they are drawn by `random.randint(0, self.n_items)` (ncf.py:34 and 36): it gives its end as well, "
      "so take 1 off the end there");
  EXPECT_FALSE(says(found, "more rows") || says(found, "num_embeddings")) << all(found);
  EXPECT_FALSE(found.layer->needed);
}

// 8 bits hold -128 to 127, and there are 180 parts.
TEST(AdviceEvidence, ANarrowTypeMakesNumbersNegative) {
  json facts = facts_of("scatter_add.index", -113, 180,
                        {{"scan", {{"bad", 17}, {"total", 50}, {"min", -128}, {"max", 120}}}});
  facts["scan"]["reason"] = "below";
  EXPECT_FALSE(says(diagnose(facts), "int8")) << all(diagnose(facts));
  facts["narrow"] = "int8";
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with(
      "if they went through int8 (the program speaks of it): that ends at 127, and what is beyond has become "
      "256 less"))
      << all(diagnose(facts));
}

// days // 30 of who has paid before.
TEST(AdviceEvidence, ADivisionThatRoundsDown) {
  json facts = facts_of("one_hot.self", -1, 6, {{"scan", {{"bad", 14}, {"total", 550}, {"min", -1}}}});
  facts["scan"]["reason"] = "below";
  facts["floored"] = {{"text", "frame['dpd'] // 30"}, {"file", "roll.py"}, {"line", 34}};
  EXPECT_EQ(
      diagnose(facts).fix.front(),
      "if it comes of `frame['dpd'] // 30` (roll.py:34): `//` rounds down, and gives -1 for what lies a "
      "little below 0: see what such a number means there");
  facts["scan"]["value"] = -2;
  facts["values"] = {{-2, 14}};
  EXPECT_FALSE(says(diagnose(facts), "rounds down")) << all(diagnose(facts));
}

// One logit, and the labels of two classes choose among its columns.
TEST(AdviceEvidence, OneColumnHasNoneForEachOfTwoClasses) {
  json facts =
      facts_of("gather.index", 1, 1, {{"scan", {{"bad", 76}, {"total", 300}, {"min", 0}, {"max", 1}}}});
  facts["variable"] = {{"name", "y_test"}, {"index", {0}}};
  EXPECT_FALSE(says(diagnose(facts), "one output")) << "a batch of one\n" << all(diagnose(facts));
  facts["layer"] = layer("out", "out_features", 1);
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "a model with one output has none for each of two classes")) << all(found);
  EXPECT_FALSE(says(found, "look at where `y_test` is computed: 76")) << all(found);
}

// A sigmoid's map behind a bicubic interpolation: another sigmoid would be one too many.
TEST(AdviceEvidence, AFewALittleAboveOneAskForNoSigmoid) {
  json facts = facts_of("binary_cross_entropy.self", 0, 0, {{"op", "binary_cross_entropy"}});
  facts["scan"] = {{"bad", 87},   {"total", 18432}, {"first", 751},     {"value", 1.001},
                   {"min", 0.25}, {"max", 1.04},    {"reason", "above"}};
  EXPECT_TRUE(says(diagnose(facts), "bicubic")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "a sigmoid")) << all(diagnose(facts));
  facts["scan"]["max"] = 7.5;
  EXPECT_TRUE(says(diagnose(facts), "only where a layer puts them out as scores")) << all(diagnose(facts));
}

// How often a word is kept is above 1 for the rare ones.
TEST(AdviceEvidence, WhatIsNeverBelowZeroIsNoLogit) {
  json facts = facts_of("bernoulli.p", 0, 0, {{"op", "bernoulli"}});
  facts["scan"] = {{"bad", 5989}, {"total", 19996}, {"first", 7},       {"value", 2.6},
                   {"min", 0.1},  {"max", 7.2},     {"reason", "above"}};
  EXPECT_FALSE(says(diagnose(facts), "logits")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), ".clamp(max=1)")) << all(diagnose(facts));
  facts["scan"]["min"] = -3.5;
  EXPECT_TRUE(says(diagnose(facts), "(logits), the sigmoid is missing where they are made"))
      << all(diagnose(facts));
}

// 300 labels, each twenty times.
TEST(AdviceEvidence, WhatWasRepeatedIsCountedAsThat) {
  json facts =
      facts_of("gather.index", 4, 3, {{"scan", {{"bad", 40}, {"total", 6000}, {"min", 0}, {"max", 4}}}});
  facts["variable"] = {{"name", "y_test"}, {"index", {0}}, {"repeated", true}};
  EXPECT_TRUE(says(diagnose(facts), "40 of 6000 that are made of it are outside [0, 3)"))
      << all(diagnose(facts));
}

// A row more at the end hides that all ids read another one's vector.
TEST(AdviceEvidence, VectorsThatWereLoadedGetNoRowMore) {
  json facts = facts_of("embedding.indices", 71, 71, {{"layer", layer("embedding", "num_embeddings", 71)}});
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
  facts["pretrained"] = true;
  const Finding found = diagnose(facts);
  EXPECT_FALSE(speaks_of_size(found)) << all(found);
  EXPECT_TRUE(says(found, "compare how rows and ids are numbered")) << all(found);
}

// 338 in one read of 26: its letters are wrong, and the table is not.
TEST(AdviceEvidence, OneRecordFarBeyondAsksForNoRows) {
  json facts =
      facts_of("embedding.indices", 338, 256,
               {{"layer", layer("kmer", "num_embeddings", 256)}, {"scan", {{"bad", 3}, {"total", 2262}}}});
  facts["values"] = json::array({json::array({338, 1}), json::array({331, 1}), json::array({302, 1})});
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
  facts["sample"] = {{"dataset_index", 129}, {"batch", 11}, {"row", 16}};
  EXPECT_FALSE(speaks_of_size(diagnose(facts))) << all(diagnose(facts));
  facts["table"] = "token";  // a vocabulary grows, and rare words come late
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
}

TEST(AdviceEvidence, TheEndOfACutIsNoClassMore) {
  json facts = facts_of("nll_loss_forward.target", 8, 8, {{"layer", layer("fc", "out_features", 8)}});
  facts["computed"] = {{"name", "sector"},
                       {"text", "int((angle + pi) / (2 * pi) * SECTORS)"},
                       {"line", 34},
                       {"file", "/a/main.py"}};
  const Finding found = diagnose(facts);
  EXPECT_FALSE(speaks_of_size(found)) << all(found);
  EXPECT_TRUE(found.fix.front().starts_with("look at `sector = int((angle")) << all(found);
  EXPECT_TRUE(says(found, "in the first one where it goes around (angles, hours of the day)")) << all(found);
}

// COCO's category_id.
TEST(AdviceEvidence, CategoriesAreNumberedFirst) {
  json facts = facts_of("nll_loss_forward.target", 13, 9, {{"layer", layer("cls", "out_channels", 9)}});
  EXPECT_FALSE(says(diagnose(facts), "category_id")) << all(diagnose(facts));
  facts["categories"] = true;
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("if they are category_id")) << all(diagnose(facts));
}

// Raw scores are of both signs.
TEST(AdviceEvidence, WhatIsNeverBelowZeroIsNoRawScore) {
  json facts = facts_of("binary_cross_entropy.self", 1, 1);
  facts["scan"].update(
      {{"value", 1.26}, {"min", 0.33}, {"max", 1.34}, {"is_float", true}, {"bad", 94}, {"total", 256}});
  EXPECT_FALSE(says(diagnose(facts), "BCEWithLogits")) << all(diagnose(facts));
  facts["scan"]["total"] = 4;
  EXPECT_TRUE(says(diagnose(facts), "BCEWithLogits")) << all(diagnose(facts));
}

// White in one record whose mask has no 1, where the others have: it is class 1 there.
TEST(AdviceEvidence, WhiteInOneRecordIsNoMark) {
  json facts = facts_of("nll_loss_forward.target", 255, 2, {{"tensor", {{"shape", {8, 32, 32}}}}});
  facts["index"] = {6, 16, 16};
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("if 255 marks what is not to count"))
      << all(diagnose(facts));
  facts["two_colours"] = true;
  facts["sample"] = {{"dataset_index", 96}, {"batch", 2}, {"row", 6}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().starts_with("turn white into class 1 where that mask is loaded"))
      << all(found);
  EXPECT_TRUE(says(found, "look at sample 96")) << all(found);
}

// A few of many are no class: nothing was taken off.
TEST(AdviceEvidence, AFewOfMinusOneAreNoClassThatWasShifted) {
  json facts = facts_of("nll_loss_forward.target", -1, 7, {{"scan", {{"total", 64}, {"max", 4}}}});
  facts["seen"] = {{"min", -1}, {"max", 5}, {"count", 900}, {"source", "dataset"}, {"kinds", 7}};
  EXPECT_EQ(diagnose(facts).summary.find("they begin at -1 in place of 0"), std::string::npos)
      << all(diagnose(facts));
  facts["scan"]["bad"] = 9;
  facts["values"] = json::array({json::array({-1, 9})});
  EXPECT_NE(diagnose(facts).summary.find("they begin at -1 in place of 0"), std::string::npos)
      << all(diagnose(facts));
}

TEST(AdviceEvidence, APartIsCountedFromOneWhereItsLastClassIsAsFrequent) {
  json facts = facts_of("multi_margin_loss.target", 8, 8, {{"scan", {{"total", 40}, {"min", 1}}}});
  facts["seen"] = {{"min", 0}, {"max", 8}, {"count", 160}, {"source", "calls"}};
  EXPECT_FALSE(says(diagnose(facts), "counted from 1")) << all(diagnose(facts));
  facts["scan"]["bad"] = 5;
  facts["values"] = json::array({json::array({8, 5})});
  EXPECT_TRUE(says(diagnose(facts), "counted from 1")) << all(diagnose(facts));
}

// 24 to 67 for 44 residues: a chain that is numbered from 25.
TEST(AdviceEvidence, ARunThatBeginsElsewhereNeedsNoMorePlaces) {
  json facts =
      facts_of("index_add.index", 44, 44,
               {{"scan", {{"bad", 117}, {"total", 217}, {"min", 24}, {"max", 67}}}, {"args", {{"dim", 0}}}});
  facts["values"] = json::array({json::array({44, 5}), json::array({67, 5})});
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "they run from 24 to 67, which is as many numbers as there are elements"))
      << all(found);
  EXPECT_FALSE(says(found, "is meant to have")) << all(found);
  facts["scan"]["max"] = 70;
  EXPECT_FALSE(says(diagnose(facts), "as many numbers as")) << all(diagnose(facts));
}

TEST(AdviceEvidence, AFloorDivisionForgetsThePartAtTheEnd) {
  json facts = facts_of("embedding.indices", 24, 24, {{"layer", layer("window", "num_embeddings", 24)}});
  facts["computed"] = {{"name", "w"}, {"text", "(pos - 1) // WINDOW"}, {"line", 62}};
  facts["made"] = {{{"text", "N_WINDOWS"}, {"file", "/a/net.py"}, {"line", 45}},
                   {{"text", "N_WINDOWS=LENGTH // WINDOW"}, {"file", "/a/net.py"}, {"line", 13}}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "leaves out the part that is not whole at the end")) << all(found);
  EXPECT_FALSE(says(found, "limit that to 23")) << all(found);
}

// Each row of them adds up to 1.
TEST(AdviceEvidence, ProbabilitiesAreNoLogits) {
  json facts = facts_of("multinomial.self", 0, 1, {{"tensor", {{"shape", {120, 7}}}}});
  facts["scan"].update({{"value", -0.34}, {"min", -0.84}, {"max", 0.95}, {"is_float", true}, {"reason", 5}});
  facts["scan"].update({{"bad", 420}, {"total", 840}});
  EXPECT_TRUE(says(diagnose(facts), "(logits): torch.multinomial(torch.softmax")) << all(diagnose(facts));
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("look at where the input is computed: 420 of 840"));
  facts["sums_to_one"] = true;
  EXPECT_FALSE(says(diagnose(facts), "softmax")) << all(diagnose(facts));
  facts["scan"]["min"] = -1.1e-5;
  EXPECT_TRUE(says(diagnose(facts), "left of a 0 by arithmetic that rounds")) << all(diagnose(facts));
  facts.erase("sums_to_one");
  facts["scores"] = false;  // the program has no word of scores
  EXPECT_FALSE(says(diagnose(facts), "softmax")) << all(diagnose(facts));
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
