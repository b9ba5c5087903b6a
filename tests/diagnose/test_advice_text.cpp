// What the program's text and the tensors around the bad one say: the statement, the dimension, the
// numbering.
#include "advice.hpp"

namespace trapline::diagnose {
namespace {

// What the variable was given last is named where no arithmetic is known.
TEST(AdviceText, TheLastStatementIsNamed) {
  json index = facts_of("gather.index", 9, 5);
  index["assigned"] = {
      {"name", "arms"}, {"text", "torch.tensor(bandit.predict(x))"}, {"file", "/a/run.py"}, {"line", 43}};
  EXPECT_TRUE(says(diagnose(index), "look at `arms = torch.tensor(bandit.predict(x))` (run.py:43): 1 of 4"))
      << all(diagnose(index));
  json rate = facts_of("bernoulli.p", 0, 0, {{"op", "bernoulli"}});
  rate["scan"] = {{"bad", 32}, {"total", 32}, {"first", 0}, {"value", -0.5}, {"min", -0.5}, {"max", -0.5}};
  rate["assigned"] = {
      {"name", "keep"}, {"text", "torch.full((n,), ratio)"}, {"file", "/a/run.py"}, {"line", 7}};
  const Finding found = diagnose(rate);
  EXPECT_TRUE(says(found, "look at `keep = torch.full((n,), ratio)` (run.py:7): all are -0.5: a schedule"))
      << all(found);
  EXPECT_FALSE(says(found, "logits")) << "one number of the program's own\n" << all(found);
}

// The places of a sequence are counted along its own dimension: rows for a batch would hide that.
TEST(AdviceText, PositionsThatCountTheBatch) {
  json facts = facts_of("embedding.indices", 32, 32, {{"table", "position"}, {"counts_from", 0}});
  facts["tensor"]["shape"] = {64};
  facts["scan"]["total"] = 64;
  facts["ranged"] = {
      {"name", "x"},         {"shape", {64, 16}}, {"dim", 0},     {"text", "torch.arange(x.size(0))"},
      {"file", "/a/net.py"}, {"line", 15},        {"batch", true}};
  Finding found = diagnose(facts);
  EXPECT_TRUE(
      found.summary.ends_with("the positions are counted along dimension 0 of `x` [64, 16], the batch"))
      << found.summary;
  ASSERT_EQ(found.fix.size(), 1U) << all(found);
  EXPECT_TRUE(found.fix.front().ends_with("the positions are those of the other one, 16 of them"))
      << all(found);
  facts["ranged"].erase("batch");
  found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().starts_with("see first that `torch.arange(x.size(0))` (net.py:15) counts"))
      << all(found);
  facts["ranged"]["shape"] = {64, 100};
  EXPECT_FALSE(says(diagnose(facts), "see first that")) << "the other one has no room either";
  facts["ranged"]["dim"] = 1;
  EXPECT_FALSE(says(diagnose(facts), "see first that")) << "the usual one";
}

// As many as a computation says there are: a picture's patches are not cut off.
TEST(AdviceText, PlacesThatFollowFromSizes) {
  json facts = facts_of("embedding.indices", 64, 17, {{"table", "position"}, {"counts_from", 0}});
  facts["tensor"]["shape"] = {65};
  facts["scan"]["total"] = 65;
  facts["text"] = facts["tokenizes"] = false;
  facts["layer"] = layer("pos", "num_embeddings", 17);
  facts["made"] = json::array({{{"text", "(image // patch) ** 2 + 1"}, {"file", "/a/vit.py"}, {"line", 9}}});
  EXPECT_TRUE(says(diagnose(facts), "feed sequences of at most 17")) << all(diagnose(facts));
  facts["made"][0]["computed"] = true;
  const Finding found = diagnose(facts);
  EXPECT_EQ(all(found).find("at most"), std::string::npos) << all(found);
  EXPECT_TRUE(says(found, "`(image // patch) ** 2 + 1` (vit.py:9) says how many places there are to be, 17"))
      << all(found);
  facts["text"] = true;
  EXPECT_FALSE(says(diagnose(facts), "says how many places")) << "a text may be cut";
}

TEST(AdviceText, AnotherDimensionHasRoomForTheIndex) {
  json facts = facts_of("gather.index", 9, 8);
  facts["args"] = {{"self", {{"shape", {8, 10}}, {"dtype", "float32"}}}, {"dim", 0}};
  facts["scan"]["bad"] = 3;
  facts["other_dimension"] = {{"dim", 1}, {"size", 10}};
  Finding found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().starts_with("look at where")) << all(found);
  EXPECT_TRUE(says(found, "see whether dimension 1 is meant: it has 10 elements, room for all of these"))
      << all(found);
  facts["other_dimension"]["batch"] = true;
  found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().ends_with("dimension 0, which is indexed, is as large as the batch"))
      << all(found);
  EXPECT_TRUE(found.fix.at(1).starts_with("if not, look at where")) << all(found);
}

json numbered(const char* contract) {
  json facts = facts_of(contract, 26, 5);
  facts["scan"]["bad"] = 12;
  facts["scan"]["total"] = 15;
  facts["scan"]["min"] = 1;
  facts["seen"] = {{"min", 1}, {"max", 26}, {"count", 15}, {"source", "calls"}, {"here", 5}};
  return facts;
}

// The classes of an episode, the groups of a batch: as many different numbers as there are places.
TEST(AdviceText, NumbersOfALongerListAreNumberedHere) {
  json labels = numbered("nll_loss_forward.target");
  labels["layer"] = layer("net.7", "out_features", 5);
  EXPECT_TRUE(says(diagnose(labels), "these 15 have just 5 different values, as many as there are classes"))
      << all(diagnose(labels));
  EXPECT_FALSE(speaks_of_size(diagnose(labels))) << all(diagnose(labels));
  labels["seen"]["here"] = 6;
  EXPECT_FALSE(says(diagnose(labels), "different values")) << all(diagnose(labels));
  EXPECT_TRUE(says(diagnose(numbered("index_add.index")), "(the groups of a batch), number them there"))
      << all(diagnose(numbered("index_add.index")));
  const Finding read = diagnose(numbered("gather.index"));
  EXPECT_FALSE(says(read, "torch.unique")) << "columns have an order of their own\n" << all(read);
  EXPECT_TRUE(says(read, "look up which place each has")) << all(read);
}

// Each row's own place was taken out of a square.
TEST(AdviceText, OnePlaceLessThanRows) {
  json facts = facts_of("nll_loss_forward.target", 63, 63);
  facts["computed"] = {{"name", "labels"}, {"text", "(torch.arange(2 * n) + n) % (2 * n)"}, {"line", 47}};
  facts["args"] = {{"self", {{"shape", {64, 63}}, {"dtype", "float32"}}}};
  EXPECT_TRUE(says(diagnose(facts), "there is one place less than there are rows (64)"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "of this very batch")) << all(diagnose(facts));
  facts["args"]["self"]["shape"] = {63, 63};
  EXPECT_TRUE(says(diagnose(facts), "compute them of the sizes of this very batch")) << all(diagnose(facts));
}

TEST(AdviceText, AQuotientIsNoScore) {
  json facts = facts_of("binary_cross_entropy.self", 0, 0, {{"op", "binary_cross_entropy"}});
  facts["scan"] = {{"bad", 38}, {"total", 64}, {"first", 0}, {"value", 1.77}, {"min", 0.4}, {"max", 2.7}};
  facts["squashed"] = "quotient";
  facts["assigned"] = {{"name", "p"}, {"text", "relevance / propensity"}, {"file", "/a/b.py"}, {"line", 45}};
  const Finding found = diagnose(facts);
  ASSERT_EQ(found.fix.size(), 1U) << all(found);
  EXPECT_TRUE(found.fix.front().starts_with(
      "look at `p = relevance / propensity` (b.py:45): see what is divided there, and by what"))
      << all(found);
  EXPECT_EQ(all(found).find("sigmoid"), std::string::npos) << all(found);
}

// F.binary_cross_entropy(labels, scores).
TEST(AdviceText, ExchangedArguments) {
  json facts = facts_of("binary_cross_entropy.target", 0, 0, {{"op", "binary_cross_entropy"}});
  facts["scan"] = {{"bad", 16}, {"total", 16}, {"first", 0}, {"value", -0.17}, {"min", -0.28}, {"max", 0.7}};
  EXPECT_TRUE(says(diagnose(facts), "F.mse_loss")) << all(diagnose(facts));
  facts["exchanged"] = true;
  const Finding found = diagnose(facts);
  ASSERT_EQ(found.fix.size(), 1U) << all(found);
  EXPECT_TRUE(found.fix.front().starts_with("the two are exchanged: what the model puts out comes first"))
      << all(found);
}

// The last element of a sequence without any.
TEST(AdviceText, ALengthOfZeroLessOne) {
  json facts = facts_of("gather.index", -1, 7, {{"scan", {{"min", -1}, {"max", 6}, {"reason", 1}}}});
  EXPECT_TRUE(says(diagnose(facts), "if -1 marks padding")) << all(diagnose(facts));
  facts["computed"] = {{"text", "n - 1"}, {"line", 8}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "look at `n - 1` (line 8)")) << all(found);
  EXPECT_TRUE(says(found, "has no last element")) << all(found);
  EXPECT_FALSE(says(found, "padding")) << all(found);
}

// `.get(word, len(words))` for a table of len(words) rows.
TEST(AdviceText, ThePlaceForUnknownWordsIsTheSizeItself) {
  json facts = facts_of("embedding.indices", 55, 55, {{"layer", layer("tokens", "num_embeddings", 55)}});
  facts["filled"] = {{"text", "index.get(word, self.size)"}, {"file", "/a/words.py"}, {"line", 47}};
  facts["made"] = json::array({{{"text", "vocab.size"}, {"file", "/a/run.py"}, {"line", 84}}});
  const Finding found = diagnose(facts);
  EXPECT_TRUE(
      found.summary.ends_with("`index.get(word, self.size)` (words.py:47) gives the number of rows "
                              "itself"))
      << found.summary;
  EXPECT_TRUE(says(found,
                   "give `tokens` one row more than that number where it is made, `vocab.size + 1` in place "
                   "of `vocab.size`"))
      << all(found);
  EXPECT_FALSE(says(found, "unless the ids are made of it")) << all(found);
}

// An order that was made of all boxes, of some of them.
TEST(AdviceText, WhatIsIndexedWasCutAfterItsIndexWasMade) {
  json facts = facts_of("index.indices", 18, 17);
  facts["scan"]["lo"] = -17;
  facts["computed"] = {{"name", "order"}, {"text", "scores.argsort()"}, {"line", 4}, {"by", "argsort"}};
  facts["cut_since"] = {{"name", "boxes"}, {"text", "boxes[keep]"}, {"line", 6}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().starts_with("look at `order = scores.argsort()` (line 4)")) << all(found);
  EXPECT_TRUE(says(found, "`boxes = boxes[keep]` (line 6) is below that")) << all(found);
}

// Numbers of 32 bits read as such of 64, as an index: two of them tell.
TEST(AdviceText, AnIndexOfTwoNumbersInOne) {
  json facts = facts_of("gather.index", 17179869185, 6, {{"values", {{17179869185, 3}, {21474836485, 1}}}});
  facts["scan"]["max"] = 21474836485;
  EXPECT_NE(
      diagnose(facts).summary.find("each is two 32-bit numbers read as one: 17179869185 is 1 + 4294967296 "
                                   "* 4"),
      std::string::npos)
      << diagnose(facts).summary;
  facts["values"] = {{17179869185, 3}, {21474836499, 1}};
  EXPECT_EQ(diagnose(facts).summary.find("read as one"), std::string::npos) << diagnose(facts).summary;
}

// A map of labels that was resized by another way than the nearest neighbour.
TEST(AdviceText, MasksAreResizedByTheNearest) {
  json facts = facts_of("nll_loss2d_forward.target", 21, 20);
  facts["tensor"]["shape"] = {4, 36, 36};
  facts["scan"]["total"] = 5184;
  facts["scan"]["bad"] = 29;
  facts["resizes"] = false;
  EXPECT_FALSE(says(diagnose(facts), "nearest neighbour")) << all(diagnose(facts));
  facts["resizes"] = true;
  EXPECT_TRUE(says(diagnose(facts), "only by the nearest neighbour")) << all(diagnose(facts));
}

// The program counts what the layer is for: others are numbered otherwise.
TEST(AdviceText, ASizeThatTheProgramCounts) {
  json facts = facts_of("embedding.indices", 61, 61, {{"layer", layer("item", "num_embeddings", 61)}});
  facts["scan"]["max"] = 70;
  facts["values"] = {{61, 2}, {70, 1}};
  facts["made"] = json::array({{{"text", "data.num('item_id')"}, {"file", "/a/run.py"}, {"line", 90}}});
  EXPECT_TRUE(says(diagnose(facts), "`data.num('item_id')` (run.py:90) says how many there are: see why"))
      << all(diagnose(facts));
  EXPECT_FALSE(speaks_of_size(diagnose(facts))) << all(diagnose(facts));
  facts["made"][0]["text"] = "max(ids)";
  facts["scan"]["max"] = 61;
  facts["values"] = {{61, 3}};
  EXPECT_TRUE(says(diagnose(facts), "is the highest number, and no count: from 0 on there is one more, 62"))
      << all(diagnose(facts));
  facts["made"][0]["text"] = "N_ITEMS=61";
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
}

// An id of no vocabulary: who made it is asked, and no tokenizer is blamed.
TEST(AdviceText, AnIdBeyondTheVocabularyIsLookedFor) {
  json facts = facts_of("embedding.indices", 119, 34, {{"layer", layer("wte", "num_embeddings", 34)}});
  facts["counted"] = {{"count", 34}, {"of", "len(stoi)"}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().starts_with("look at where the ids are computed: none above 33 exists there"))
      << all(found);
  EXPECT_TRUE(says(found, "chosen among more columns of scores than it has entries")) << all(found);
}

// The statement itself rounds down: another division of the program's is not named, and -1 marks nothing.
TEST(AdviceText, AStatementThatRoundsDown) {
  json facts = facts_of("embedding.indices", -1, 40, {{"scan", {{"total", 64}, {"min", -1}, {"max", 39}}}});
  facts["scan"]["reason"] = 1;
  facts["floored"] = {{"text", "days // 30"}, {"file", "/a/net.py"}, {"line", 48}};
  facts["assigned"] = {{"name", "rel"}, {"text", "table(ids)"}, {"file", "/a/net.py"}, {"line", 58}};
  EXPECT_TRUE(says(diagnose(facts), "if it comes of `days // 30`")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "see what -1 stands for")) << all(diagnose(facts));
  facts["assigned"]["text"] = "torch.div(a, b, rounding_mode='floor')";
  EXPECT_FALSE(says(diagnose(facts), "if it comes of")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "if -1 marks")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "see what -1 stands for")) << all(diagnose(facts));
}

// 0, 1, 2 and 4 for four classes; some of a long list for nineteen.
TEST(AdviceText, LabelsWithGapsAreNumberedFirst) {
  json facts = facts_of("nll_loss2d_forward.target", 4, 4, {{"layer", layer("head", "out_channels", 4)}});
  facts["tensor"]["shape"] = {2, 96, 96};
  facts["scan"]["total"] = 18432;
  facts["scan"]["bad"] = 234;
  facts["resizes"] = false;
  facts["seen"] = {{"min", 0}, {"max", 4}, {"count", 18432}, {"source", "calls"}, {"here", 4}, {"gap", 3}};
  EXPECT_TRUE(says(diagnose(facts), "only 4 different numbers occur of 0 to 4, and 3 does not"))
      << all(diagnose(facts));
  EXPECT_FALSE(speaks_of_size(diagnose(facts))) << all(diagnose(facts));
  facts["seen"]["here"] = 5;
  facts["seen"].erase("gap");
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
  facts["seen"] = {{"min", 0}, {"max", 4}, {"count", 24}, {"source", "calls"}, {"here", 4}, {"gap", 3}};
  facts["scan"]["total"] = 24;
  EXPECT_FALSE(says(diagnose(facts), "different numbers occur")) << "too few to tell";
}

// attention[batch, target, source] of pairs that were read the other way around.
TEST(AdviceText, TwoIndicesThatFitEachOthersDimensions) {
  json facts = facts_of("index.indices", 10, 10);
  facts["scan"]["lo"] = -10;
  facts["exchanged_index"] = true;
  EXPECT_TRUE(diagnose(facts).fix.back().starts_with("this index and another one of the call would fit"))
      << all(diagnose(facts));
}

// Relative positions of a sequence that is too long lie beyond both ends, equally far.
TEST(AdviceText, DistancesBeyondBothEnds) {
  json facts = facts_of("embedding.indices", -8, 63, {{"table", "other"}});
  facts["tensor"]["shape"] = {40, 40};
  facts["scan"] = {{"bad", 72}, {"total", 1600}, {"first", 32}, {"value", -1}, {"min", -8},
                   {"max", 70}, {"lo", 0},       {"hi", 63},    {"reason", 1}};
  facts["computed"] = {{"name", "rel"}, {"text", "pos[:, None] - pos + 31"}, {"line", 12}};
  EXPECT_TRUE(says(diagnose(facts), "the table has room for sequences of 32, and this one has 40"))
      << all(diagnose(facts));
  facts["scan"]["max"] = 69;
  EXPECT_FALSE(says(diagnose(facts), "room for sequences")) << all(diagnose(facts));
}

// Codes of another list, all beyond the size of a one_hot: where that is given is said.
TEST(AdviceText, AllBeyondTheSizeOfAOneHot) {
  json facts = facts_of("one_hot.self", 114, 32);
  facts["scan"]["bad"] = facts["scan"]["total"] = 64;
  facts["scan"]["min"] = 102;
  facts["made"] = json::array({{{"text", "N_CODES=32"}, {"file", "/a/defaults.py"}, {"line", 13}}});
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "all 64 are outside [0, 32): look at where")) << all(found);
  EXPECT_TRUE(says(found, "by `N_CODES=32` (defaults.py:13)")) << all(found);
}

// A larger size is advised where all numbers were counted and fill the places from 0 on; else it is asked
// for.
TEST(AdviceText, ASizeIsEnlargedOnlyWhereTheNumbersFillIt) {
  json facts = facts_of("nll_loss_forward.target", 11, 10, {{"layer", layer("head", "out_features", 10)}});
  facts["seen"] = {{"min", 0}, {"max", 11}, {"count", 480}, {"source", "dataset"}, {"kinds", 12}};
  EXPECT_TRUE(
      diagnose(facts).fix.front().starts_with("if there are meant to be more than 10 classes: change"));
  const json others = json::array({{{"min", 6}, {"kinds", 6}}, {{"min", 0}, {"kinds", 7}}});
  for (const json& other : others) {
    facts["seen"].update(other);
    const Finding found = diagnose(facts);
    EXPECT_TRUE(found.fix.front().starts_with("look at where the label is made")) << all(found);
    EXPECT_TRUE(says(found,
                     "see which of the two is meant: `head` has 10 outputs, and 11 is the highest "
                     "of 480 labels of the whole data set"))
        << all(found);
    EXPECT_FALSE(says(found, "meant to be more")) << all(found);
  }
  facts["seen"] = {{"min", 0}, {"max", 40}, {"count", 4800}, {"source", "dataset"}, {"kinds", 41}};
  facts["scan"]["max"] = 40;
  EXPECT_FALSE(says(diagnose(facts), "meant to be more")) << "four times as many: " << all(diagnose(facts));
}

// `faces - offset`, all of it far below 0: nothing of it marks anything.
TEST(AdviceText, NegativeIndicesOfArithmeticMarkNothing) {
  json facts = facts_of("index.indices", -42, 8);
  facts["scan"].update({{"lo", -8}, {"bad", 36}, {"total", 36}, {"min", -42}, {"max", -35}});
  facts["values"] = json::array({json::array({-42, 4}), json::array({-35, 5})});
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().starts_with("look at where the index is computed")) << all(found);
  EXPECT_TRUE(says(found, "comes of an offset or other arithmetic")) << all(found);
  EXPECT_FALSE(says(found, "marks something")) << all(found);
}

// What a data set's own statement made is named, of numbers as of labels.
TEST(AdviceText, TheStatementOfTheDataSetIsNamed) {
  const json made = {
      {"name", "self.images"}, {"text", "pixels / 15.0"}, {"file", "/a/digits.py"}, {"line", 13}};
  json facts = facts_of("binary_cross_entropy.target", 0, 1, {{"assigned", made}});
  facts["scan"].update({{"value", 1.07}, {"min", 0.0}, {"max", 1.07}, {"is_float", true}, {"bad", 5}});
  facts["sample"] = {{"by", "hand"}, {"batch", 0}};
  EXPECT_TRUE(says(diagnose(facts), "look at `self.images = pixels / 15.0` (digits.py:13)"))
      << all(diagnose(facts));
  json label = facts_of("nll_loss_forward.target", 9, 4, {{"assigned", made}});
  label["scan"].update({{"bad", 12}, {"total", 12}});
  EXPECT_TRUE(
      says(diagnose(label), "are outside [0, 4): look at `self.images = pixels / 15.0` (digits.py:13)"))
      << all(diagnose(label));
}

// Rotary tables that are cut to the tokens that are left: the positions are right.
TEST(AdviceText, WhatIsIndexedMayBeCutTooShort) {
  json facts = facts_of("index.indices", 42, 42, {{"cut_from", 256}});
  facts["scan"].update({{"lo", -42}, {"max", 65}});
  EXPECT_TRUE(says(diagnose(facts), "is a part of a tensor with 256 places there, room for all of these"))
      << all(diagnose(facts));
  facts["table"] = "position";
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "is a part of a tensor with 256 places there")) << all(found);
  EXPECT_FALSE(says(found, "begin anew")) << all(found);
  facts["cut_from"] = 60;
  EXPECT_FALSE(says(diagnose(facts), "is a part of a tensor")) << all(diagnose(facts));
}

// Actions 0, 1 and 3 of a game that has more: `len(actions)` is right, and one output more would hold 3 by
// chance.
TEST(AdviceText, ACountOfNumbersWithGapsWantsNoPlaceMore) {
  json facts = facts_of("gather.index", 3, 3, {{"layer", layer("out", "out_features", 3)}});
  facts["made"] = {{{"text", "num_actions=len(actions)"}, {"file", "/a/dqn.py"}, {"line", 73}}};
  facts["seen"] = {{"min", 0}, {"max", 3}, {"count", 320}, {"source", "calls"}, {"here", 3}, {"gap", 2}};
  EXPECT_TRUE(
      says(diagnose(facts),
           "they have no more than 3 different ones, with gaps: number them by the list that is counted"))
      << all(diagnose(facts));
  facts["seen"].erase("gap");
  facts["seen"]["here"] = 4;
  EXPECT_TRUE(says(diagnose(facts), "`out` needs one output more")) << all(diagnose(facts));
}

// Each number from 1 to the size, and no 0, in all of the data: how often the last occurs tells nothing.
TEST(AdviceText, CodesFromOneOfWhichTheLastIsRare) {
  json facts = facts_of("embedding.indices", 5, 5, {{"layer", layer("kinds", "num_embeddings", 5)}});
  facts["scan"].update({{"bad", 1}, {"total", 64}, {"min", 2}});
  facts["seen"] = {{"min", 1}, {"max", 5}, {"count", 1200}, {"source", "dataset"}, {"kinds", 5}, {"gap", 0}};
  EXPECT_TRUE(says(diagnose(facts), "if they are counted from 1 (no 0 among 1200 seen)"))
      << all(diagnose(facts));
  facts["seen"]["kinds"] = 4;
  EXPECT_FALSE(says(diagnose(facts), "counted from 1")) << all(diagnose(facts));
}

// `scores[0, token]`: dimension 1 of what the program has is not said to be 0.
TEST(AdviceText, ADimensionOfASliceHasNoNumber) {
  json facts = facts_of("index.indices", 59, 59);
  facts["args"]["self"] = {{"shape", {59, 25}}, {"dtype", "float32"}};
  EXPECT_NE(diagnose(facts).summary.find("dimension 0 of the input has 59"), std::string::npos)
      << diagnose(facts).summary;
  facts["selected"] = true;
  EXPECT_NE(diagnose(facts).summary.find("that dimension of the input has 59"), std::string::npos)
      << diagnose(facts).summary;
}

// `probs[probs < kth] = -inf`: no layer made it.
TEST(AdviceText, MinusInfinityAmongProbabilities) {
  json facts =
      facts_of("multinomial.self", 0, 0, {{"nan", {{"command", "python a.py"}, {"when", "generation"}}}});
  facts["scan"].update(
      {{"value", "-inf"}, {"min", "-inf"}, {"max", 0.48}, {"is_float", true}, {"reason", 4}});
  const Finding found = diagnose(facts);
  ASSERT_EQ(found.fix.size(), 1U) << all(found);
  EXPECT_TRUE(found.fix.front().ends_with("out of probabilities 0 does")) << all(found);
}

// A run that arithmetic has moved, `places + delay`, is as much wrong as its arithmetic.
TEST(AdviceText, ARunThatIsComputedIsNotMovedBack) {
  json facts = facts_of("gather.index", 65, 48);
  facts["scan"].update({{"total", 48}, {"bad", 18}, {"min", 18}, {"max", 65}});
  EXPECT_TRUE(says(diagnose(facts), "they seem to be counted from 18 here")) << all(diagnose(facts));
  facts["seen"] = {{"min", 18}, {"max", 65}, {"count", 48}, {"source", "calls"}, {"here", 20}};
  EXPECT_FALSE(says(diagnose(facts), "counted from 18")) << "most between do not occur\n"
                                                         << all(diagnose(facts));
  facts["seen"]["here"] = 48;
  EXPECT_TRUE(says(diagnose(facts), "they seem to be counted from 18 here")) << all(diagnose(facts));
  facts["computed"] = {{"name", "at"}, {"text", "places + delay"}, {"line", 57}, {"by", ""}};
  EXPECT_FALSE(says(diagnose(facts), "counted from 18")) << all(diagnose(facts));
}

// Each class from 0 on stands in the batch: the size is asked for first, and where a library's setting is
// named the labels are not spoken of as if it had been asked.
TEST(AdviceText, LabelsWithoutAGapAskForTheSizeFirst) {
  json facts = facts_of("nll_loss_forward.target", 4, 4, {{"layer", layer("classifier", "out_features", 4)}});
  facts["scan"].update({{"min", 0}, {"max", 4}, {"bad", 10}, {"total", 50}});
  facts["values"] = json::array({json::array({4, 10})});
  facts["seen"] = {{"min", 0}, {"max", 4}, {"count", 50}, {"source", "calls"}, {"here", 5}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.fix.front().starts_with("see which of the two is meant: `classifier` has 4 outputs"))
      << all(found);
  EXPECT_TRUE(found.fix.at(1).starts_with("if the size is right, look at where")) << all(found);
  json known = facts;
  known["assigned"] = {
      {"name", "mask"}, {"text", "read(path, key=1)"}, {"file", "/a/tiles.py"}, {"line", 44}};
  EXPECT_TRUE(diagnose(known).fix.front().starts_with("look at `mask = read(path, key=1)` (tiles.py:44)"))
      << all(diagnose(known));
  facts["library"] = {
      {"caller", "transformers"},
      {"owner", "transformers"},
      {"maker", "BertForSequenceClassification"},
      {"owners", json::array({"transformers.models.bert.modeling_bert.BertForSequenceClassification",
                              "transformers.modeling_utils.PreTrainedModel"})}};
  EXPECT_TRUE(says(diagnose(facts), "num_labels=N")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "if the size is right, ")) << all(diagnose(facts));
}

}  // namespace
}  // namespace trapline::diagnose
