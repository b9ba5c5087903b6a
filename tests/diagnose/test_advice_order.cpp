// What stands first, what is left out, and where the user can act: help that a reader follows from the top.
#include "advice.hpp"

namespace trapline::diagnose {
namespace {

json made_at(const char* text, const char* file, std::int64_t line) {
  return json::array({{{"text", "n_kinds"}, {"file", "/a/model.py"}, {"line", 12}},
                      {{"text", text}, {"file", file}, {"line", line}}});
}

// A larger table hides a wrong id: where nothing counts the ids it is said last, and where it is made.
TEST(AdviceOrder, ATableIsMadeLargerLast) {
  json ids = facts_of("embedding.indices", 9, 9, {{"scan", {{"total", 6}, {"min", 2}}}});
  ids["layer"] = layer("kind", "num_embeddings", 9);
  ids["made"] = made_at("n_kinds=len(KINDS)", "/a/main.py", 40);
  const Finding f = diagnose(ids);
  EXPECT_TRUE(f.fix.front().starts_with("look at where the ids are computed")) << all(f);
  EXPECT_TRUE(
      f.fix.back().starts_with("`n_kinds=len(KINDS)` (main.py:40) says how many there are, and 9 is the "
                               "next number"))
      << all(f);
  EXPECT_TRUE(f.fix.back().ends_with("`kind` needs one row more")) << all(f);
  ids["made"] = made_at("n_kinds=9", "/a/main.py", 40);
  EXPECT_TRUE(diagnose(ids).fix.back().starts_with(
      "see which of the two is meant: `kind` has 9 rows, by `n_kinds=9`"))
      << all(diagnose(ids));
  ASSERT_TRUE(f.layer);
  ASSERT_EQ(f.layer->made.size(), 2U);
  EXPECT_EQ(f.layer->made.front().text, "n_kinds");
}

// The setting is said once, with the line of the model that has it.
TEST(AdviceOrder, ASettingOfALibraryIsNamedOnce) {
  json ids = facts_of("embedding.indices", 9, 9);
  ids["layer"] = layer("kind", "num_embeddings", 9);
  ids["library"] = {{"owner", "somelib"}, {"maker", "Net"}, {"setting", "kind_vocab_size"}};
  ids["made"] = json::array({{{"text", "kind_vocab_size"}, {"file", "/a/main.py"}, {"line", 17}}});
  EXPECT_TRUE(says(diagnose(ids), "`kind` has 9 rows, by `kind_vocab_size` (main.py:17), and 9 is"))
      << all(diagnose(ids));
}

// Tables that are given a column each are no parts of one.
TEST(AdviceOrder, TablesOfColumnsAreNoPartsOfOne) {
  json ids = facts_of("embedding.indices", 9, 8);
  ids["layer"] = layer("tables.1", "num_embeddings", 8);
  ids["layer"]["siblings"] = {{"count", 4}, {"rows", 32}};
  EXPECT_TRUE(says(diagnose(ids), "parts of one")) << all(diagnose(ids));
  ids["variable"] = {{"name", "codes"}, {"index", {3, 1}}};
  EXPECT_FALSE(says(diagnose(ids), "parts of one")) << all(diagnose(ids));
}

// 253 in a table of 13 rows is -3 that was stored without a sign; 999 is a fill value: no table is as large.
TEST(AdviceOrder, NoTableForAMarkOrAWrappedNumber) {
  for (const auto& [value, words] : {std::pair{253, "253 is also what -3 becomes in uint8"},
                                     std::pair{999, "999 is a usual fill value"}}) {
    json ids = facts_of("embedding.indices", value, 13, {{"scan", {{"total", 112}}}});
    ids["layer"] = layer("jump", "num_embeddings", 13);
    EXPECT_TRUE(says(diagnose(ids), words)) << all(diagnose(ids));
    EXPECT_FALSE(speaks_of_size(diagnose(ids))) << all(diagnose(ids));
  }
  json ids = facts_of("embedding.indices", 100, 13, {{"scan", {{"total", 112}}}});
  ids["layer"] = layer("jump", "num_embeddings", 13);
  EXPECT_TRUE(says(diagnose(ids), "of the two is meant")) << all(diagnose(ids));
}

TEST(AdviceOrder, WhatIsComputedMarksNothing) {
  json index = facts_of("gather.index", -1, 70);
  index["args"] = {{"dim", 1}, {"self", {{"shape", {4, 70}}}}};
  EXPECT_TRUE(says(diagnose(index), "str.find()")) << all(diagnose(index));
  index["computed"] = {{"name", ""}, {"text", "t[:, None] - lags"}, {"line", 63}};
  const Finding f = diagnose(index);
  EXPECT_EQ(f.fix.size(), 1U) << all(f);
  EXPECT_TRUE(says(f, "look at `t[:, None] - lags` (line 63): 1 of 4 is outside [0, 70)")) << all(f);
  json ids = facts_of("embedding.indices", -1, 37);
  EXPECT_TRUE(says(diagnose(ids), "see what -1 stands for")) << all(diagnose(ids));
  ids["drawn"] = true;
  ids["table"] = "other";
  EXPECT_FALSE(says(diagnose(ids), "if -1 marks")) << all(diagnose(ids));
  EXPECT_FALSE(says(diagnose(ids), "see what -1 stands for")) << all(diagnose(ids));
}

TEST(AdviceOrder, AFunctionThatComputedIsNamedWithItsFile) {
  json index = facts_of("index.indices", 6, 6);
  index["computed"] = {
      {"name", "kind"}, {"text", "(x * 6).long()"}, {"line", 21}, {"file", "/a/reaction.py"}};
  const Finding f = diagnose(index);
  EXPECT_TRUE(says(f, "look at `kind = (x * 6).long()` (reaction.py:21)")) << all(f);
  EXPECT_TRUE(says(f, "its very end gives 6: say where that belongs, in the last part (5)")) << all(f);
  index.erase("computed");
  index["passed_as"] = {{"name", "shortlist"}, {"file", "/a/main.py"}, {"line", 74}};
  EXPECT_TRUE(says(diagnose(index), "look at where `shortlist` is computed, before main.py:74 passes it on"))
      << all(diagnose(index));
}

// A NaN that a search put behind the last edge is said before any row.
TEST(AdviceOrder, ANanInTheSampleComesFirst) {
  json ids = facts_of("embedding.indices", 17, 17, {{"scan", {{"total", 48}, {"min", 8}}}});
  ids["layer"] = layer("tables.1", "num_embeddings", 17);
  ids["sample"] = {{"batch", 9}, {"row", 1}, {"dataset_index", 36}, {"by", "rows"}, {"likely", true}};
  EXPECT_TRUE(diagnose(ids).fix.front().starts_with("that sample has NaN or Inf")) << all(diagnose(ids));
  EXPECT_FALSE(speaks_of_size(diagnose(ids))) << all(diagnose(ids));
}

// One number fits any tensor that is long enough.
TEST(AdviceOrder, OneNumberDoesNotFitAnotherTensor) {
  json index = facts_of("index.indices", 6, 6);
  index["fits"] = {{"name", "x"}, {"shape", {9, 3}}};
  EXPECT_FALSE(says(diagnose(index), "all of it would fit")) << all(diagnose(index));
  index["values"] = json::array({json::array({6, 1}), json::array({7, 1})});
  EXPECT_TRUE(says(diagnose(index), "all of it would fit x [9, 3]")) << all(diagnose(index));
}

json weights(const char* value, std::vector<std::int64_t> shape) {
  json facts = facts_of("multinomial.self", 0, 0);
  facts["scan"]["value"] = value;
  facts["scan"]["min"] = facts["scan"]["max"] = 0.0;
  facts["scan"]["is_float"] = true;
  facts["scan"]["reason"] = value == std::string("inf") ? 4 : 3;
  facts["tensor"] = {{"shape", shape}, {"dtype", "float32"}, {"device", "cpu"}};
  facts["weights"] = {{"name", ""}, {"bad", 0}, {"total", 6}};
  facts["nan"] = {{"command", "python main.py"}};
  return facts;
}

// Weights of records are no scores: a softmax would draw the wrong one, and no layer made them.
TEST(AdviceOrder, WeightsThatNoModelMakesAreNoScores) {
  json facts = weights("inf", {95});
  facts["scores"] = false;
  const Finding f = diagnose(facts);
  EXPECT_TRUE(says(f, "look at where the input is computed: a weight is Inf after a division by 0"))
      << all(f);
  EXPECT_FALSE(says(f, "softmax") || says(f, "temperature") || says(f, "--watch nan")) << all(f);
  json row = weights("nan", {4, 9});
  EXPECT_FALSE(says(diagnose(row), "--watch nan") || says(diagnose(row), "check the logits"))
      << all(diagnose(row));
  EXPECT_TRUE(says(diagnose(row), "it is 0/0, as a rule, as where a row is divided by its own sum of 0"))
      << all(diagnose(row));
}

// The weights are the same for every row: no learning rate makes a NaN of one of them alone.
TEST(AdviceOrder, ANanOfOneRowIsThatSamples) {
  json facts = facts_of("binary_cross_entropy.self", 0, 1);
  facts["scan"]["value"] = "nan";
  facts["scan"]["min"] = 0.25;
  facts["scan"]["max"] = 0.5;
  facts["scan"]["is_float"] = true;
  facts["scan"]["reason"] = 3;
  facts["weights"] = {{"name", ""}, {"bad", 0}, {"total", 6}};
  facts["nan"] = {{"command", "python main.py"}, {"trains", true}};
  EXPECT_TRUE(says(diagnose(facts), "lower the learning rate")) << all(diagnose(facts));
  facts["sample"] = {{"batch", 13}, {"row", 3}, {"dataset_index", 30}, {"loader", "loader"}};
  const Finding f = diagnose(facts);
  EXPECT_FALSE(says(f, "learning rate")) << all(f);
  EXPECT_TRUE(says(f, "the other rows of this call are finite with the same weights")) << all(f);
  EXPECT_TRUE(says(f, "--watch nan")) << all(f);
  facts["assigned"] = {{"name", "p"}, {"text", "table.predict(scores)"}, {"file", "/a/main.py"}, {"line", 8}};
  EXPECT_TRUE(says(diagnose(facts), "the other rows of this call")) << "a layer may make it, or the sample\n"
                                                                    << all(diagnose(facts));
  facts["assigned"]["entered"] = true;
  const Finding numpy = diagnose(facts);
  EXPECT_EQ(
      numpy.fix.front(),
      "look at `p = table.predict(scores)` (main.py:8): it has NaN there, before it is a tensor: a value "
      "that is missing, or one that what is called gives no answer for");
  EXPECT_FALSE(says(numpy, "--watch nan") || says(numpy, "the other rows")) << all(numpy);
}

TEST(AdviceOrder, AVectorOfZerosIsBadAsAWhole) {
  json facts = weights("0", {148});
  facts["scan"]["value"] = 0.0;
  facts["scan"]["total"] = 148;
  facts["scan"]["reason"] = 6;
  const Finding f = diagnose(facts);
  EXPECT_TRUE(says(f, "all 148 weights are 0")) << all(f);
  ASSERT_TRUE(f.element);
  EXPECT_EQ(f.element->bad, 148);
}

// Two tokens around each text: cut off, it would lose its end.
TEST(AdviceOrder, TokensAroundATextNeedPlaces) {
  json ids = facts_of("embedding.indices", 25, 25, {{"scan", {{"total", 27}, {"bad", 2}, {"max", 26}}}});
  ids["table"] = "position";
  ids["layer"] = layer("positions", "num_embeddings", 25);
  ids["tensor"]["shape"] = {27};
  const Finding f = diagnose(ids);
  EXPECT_TRUE(f.fix.front().starts_with("2 beyond may be the tokens that begin and end a text")) << all(f);
  EXPECT_TRUE(says(f, "27 at least")) << all(f);
}

TEST(AdviceOrder, NoTokenizerIsNamedWhereThereIsNone) {
  json ids = facts_of("embedding.indices", 160, 160);
  ids["table"] = "token";
  ids["resizable"] = "lm";
  ids["layer"] = layer("lm.embed_tokens", "num_embeddings", 160);
  EXPECT_TRUE(says(diagnose(ids), "len(tokenizer)")) << all(diagnose(ids));
  ids["tokenizes"] = false;
  EXPECT_FALSE(says(diagnose(ids), "tokenizer")) << all(diagnose(ids));
  EXPECT_TRUE(diagnose(ids).fix.front().starts_with("look at where the ids are computed"))
      << all(diagnose(ids));
}

TEST(AdviceOrder, AConfigThatWasChangedLaterIsNotToBeChanged) {
  json labels = facts_of("nll_loss_forward.target", 7, 3);
  labels["layer"] = layer("classifier.1", "out_features", 3);
  labels["library"] = {{"owner", "transformers"},
                       {"maker", "ResNetForImageClassification"},
                       {"owners", {"transformers.modeling_utils.PreTrainedModel"}},
                       {"settings", {{"num_labels", {3}}}}};
  EXPECT_TRUE(says(diagnose(labels), "from_pretrained(..., num_labels=")) << all(diagnose(labels));
  labels["library"]["settings"]["num_labels"] = {3, 9};
  const Finding f = diagnose(labels);
  EXPECT_TRUE(says(f, "the config says num_labels=9, but `classifier.1` was made with 3")) << all(f);
}

TEST(AdviceOrder, TheLossThatWasCalledIsNamed) {
  json labels = facts_of("nll_loss_forward.target", 8, 6);
  EXPECT_TRUE(diagnose(labels).summary.starts_with("cross_entropy: ")) << all(diagnose(labels));
  labels["as_nll"] = true;
  EXPECT_TRUE(diagnose(labels).summary.starts_with("nll_loss: ")) << all(diagnose(labels));
}

json long_text(std::int64_t length) {
  return {{"table", "position"},
          {"tokenizes", true},
          {"position", {{"rows", 96}, {"length", length}, {"name", "wpe"}}},
          {"sequence", "input_ids"},
          {"scan", {{"bad", length - 96}, {"total", length}, {"max", length - 1}}}};
}

// Positions of the program's own are looked at before anything is cut or enlarged.
TEST(AdviceOrder, PositionsOfTheProgramsOwn) {
  json facts = long_text(113);
  EXPECT_TRUE(says(diagnose(facts_of("embedding.indices", 96, 96, facts)), "input_ids[:, :96]"));
  facts["variable"] = {{"name", "position_ids"}, {"index", {0, 96}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 96, 96, facts));
  EXPECT_EQ(finding.fix.front(),
            "look at where `position_ids` is made: of several texts in one row each has positions from 0 on");
  EXPECT_FALSE(says(finding, "input_ids[:, :96]")) << all(finding);  // the positions would be longer than it
}

TEST(AdviceOrder, RowsThatAreFilledUpToAMultiple) {
  json facts = long_text(128);
  facts["padded_to"] = 64;
  EXPECT_TRUE(
      diagnose(facts_of("embedding.indices", 96, 96, facts))
          .fix.front()
          .starts_with("the collate function fills rows up to a multiple of 64 (pad_to_multiple_of=64), and "
                       "128 is one"));
  facts["padded_to"] = 50;
  EXPECT_FALSE(says(diagnose(facts_of("embedding.indices", 96, 96, facts)), "pad_to_multiple_of"));
}

// A session that keeps its count from one dialogue to the next: none is too long.
TEST(AdviceOrder, ACountThatGoesOnComesBeforeTheLength) {
  json facts =
      facts_of("embedding.indices", 256, 256,
               {{"table", "position"}, {"counts_from", 225}, {"scan", {{"min", 225}, {"max", 263}}}});
  facts["tensor"]["shape"] = {1, 39};
  facts["grows"] = true;
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.fix.front().ends_with(
      "a count that goes on from call to call has to begin anew with each sequence"))
      << all(finding);
  EXPECT_EQ(finding.fix.back(),
            "if they count what one sequence has alone, it may have 256, what it begins with and what is "
            "generated together");
  EXPECT_FALSE(says(finding, "generate fewer")) << all(finding);
}

// Two ships that lie over each other, of which the masks were added.
TEST(AdviceOrder, AFewPlacesOfAMapAreMendedFirst) {
  json facts = facts_of("nll_loss2d_forward.target", 2, 2,
                        {{"scan", {{"total", 13824}, {"bad", 12}, {"min", 0}, {"max", 2}}}});
  facts["tensor"]["shape"] = {6, 48, 48};
  facts["values"] = json::array({{{"value", 2}, {"count", 12}}});
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("if 2 is not a class, correct it"))
      << all(diagnose(facts));
  facts["scan"]["bad"] = 3000;
  facts["values"][0]["count"] = 3000;
  EXPECT_FALSE(diagnose(facts).fix.front().starts_with("if 2 is not a class")) << all(diagnose(facts));
}

TEST(AdviceOrder, AWindowThatSlidesBeginsAtZero) {
  json facts = facts_of("embedding.indices", 48, 48,
                        {{"table", "position"}, {"counts_from", 1}, {"scan", {{"min", 1}, {"max", 48}}}});
  facts["tensor"]["shape"] = {48};
  EXPECT_NE(diagnose(facts).summary.find("are counted from 1"), std::string::npos) << all(diagnose(facts));
  facts["no_grad"] = true;
  EXPECT_NE(diagnose(facts).summary.find("positions begin at 1"), std::string::npos) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "from 0 again in each window")) << all(diagnose(facts));
}

// Two columns that share their bins on purpose.
TEST(AdviceOrder, WhatEdgesCutHasNoOffset) {
  json facts = facts_of("embedding.indices", 12, 12, {{"scan", {{"total", 40}, {"min", 2}, {"max", 12}}}});
  facts["tensor"]["shape"] = {20, 2};
  facts["sample"] = {{"dataset_index", 87}, {"batch", 4}, {"row", 19}, {"by", "function"}};
  EXPECT_TRUE(says(diagnose(facts), "share a table")) << all(diagnose(facts));
  facts["computed"] = {
      {"name", "bins"}, {"text", "torch.bucketize(tm, edges)"}, {"line", 52}, {"by", "bucketize"}};
  EXPECT_FALSE(says(diagnose(facts), "share a table")) << all(diagnose(facts));
}

TEST(AdviceOrder, ScoresOfAHundredAreDivided) {
  json facts = facts_of("binary_cross_entropy.target", 71, 1, {{"scan", {{"total", 40}, {"bad", 40}}}});
  facts["scan"].update({{"is_float", true}, {"value", 71.0}, {"min", 24.0}, {"max", 100.0}, {"hi", 1}});
  facts["values"] = json::array({{{"value", 71.0}, {"count", 3}}, {{"value", 100.0}, {"count", 2}}});
  EXPECT_EQ(diagnose(facts).fix.front(), "look at where the target is computed: 40 of 40 are above 1");
  EXPECT_EQ(diagnose(facts).fix.at(1), "if they are percent, or scores up to 100: target / 100")
      << all(diagnose(facts));
}

// Two of 600 are 0: a batch of 32 without one is no part of its own.
TEST(AdviceOrder, ABatchMayLackWhatIsRare) {
  json facts = facts_of("nll_loss_forward.target", 4, 4,
                        {{"scan", {{"total", 32}, {"bad", 8}, {"min", 1}, {"max", 4}}}});
  facts["seen"] = {{"min", 0}, {"max", 4}, {"count", 600}, {"source", "calls"}};
  EXPECT_NE(diagnose(facts).summary.find("elsewhere 0 occurs"), std::string::npos) << all(diagnose(facts));
  facts["seen"]["source"] = "dataset";
  EXPECT_EQ(diagnose(facts).summary.find("elsewhere 0 occurs"), std::string::npos) << all(diagnose(facts));
}

}  // namespace
}  // namespace trapline::diagnose
