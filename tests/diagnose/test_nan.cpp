// The words about where a value comes from: the caller's variable, and what surrounds a NaN.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/finding.hpp"
#include "reading.hpp"

namespace trapline::diagnose {
namespace {

using nlohmann::json;

Finding diagnose(json facts) {
  facts["kind"] = "violation";
  const Result<Finding> result = diagnose_violation(facts);
  EXPECT_TRUE(result) << (result ? "" : result.error().line());
  return result ? *result : Finding{};
}

json index_facts() {
  return {
      {"contract", "gather.index"},
      {"index", {2}},
      {"tensor", {{"shape", {496}}, {"dtype", "int64"}, {"device", "cpu"}}},
      {"scan",
       {{"bad", 1}, {"total", 496}, {"first", 2}, {"value", 400}, {"lo", 0}, {"hi", 400}, {"reason", 2}}}};
}

json row_facts(int reason = 3, const char* value = "nan") {
  return {
      {"contract", "multinomial.self"},
      {"index", {1, 0}},
      {"tensor", {{"shape", {3, 5}}, {"dtype", "float32"}, {"device", "cpu"}}},
      {"weights", {{"name", ""}, {"bad", 0}, {"total", 4}}},
      {"scan",
       {{"bad", 1}, {"total", 15}, {"first", 5}, {"value", value}, {"reason", reason}, {"is_float", true}}}};
}

constexpr const char* kRow = "multinomial: input[1, 0] is nan: row 1 of the probabilities is not finite";

bool says(const Finding& finding, const std::string& words) {
  for (const std::string& line : finding.fix) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(Nan, TheFirstBadOfTheLossesThatWereKept) {
  json facts = row_facts();
  facts["weights"] = {{"name", "body.weight"}, {"bad", 4}, {"total", 4}};
  facts["nan"] = {{"losses", {{"name", "losses"}, {"index", 37}, {"count", 120}}}};
  EXPECT_EQ(
      diagnose(facts).fix.at(0),
      "an earlier step broke the weights: losses[37] is the first of 120 losses that is not finite: look "
      "at the batch and the learning rate of that step and of the one before; to stop there: assert "
      "torch.isfinite(loss) before loss.backward()");
  facts["nan"]["losses"]["index"] = 0;  // it never was finite
  EXPECT_FALSE(says(diagnose(facts), "losses[0]"));
}

TEST(Nan, TheStatementThatMadeIt) {
  json facts = row_facts();
  facts["nan"] = {{"made",
                   {{"op", "pow"},
                    {"name", "weights"},
                    {"text", "priorities ** alpha"},
                    {"origin", {{"file", "/home/u/replay.py"}, {"line", 25}}}}},
                  {"command", "python main.py"}};
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.summary,
            std::string(kRow) +
                "; the model's weights are finite; `pow` made it of finite numbers in `weights = priorities "
                "** alpha` (replay.py:25)");
  ASSERT_EQ(finding.fix.size(), 1U);  // neither the command that names a layer nor the data
  EXPECT_EQ(finding.fix[0],
            "`pow` in `weights = priorities ** alpha` (replay.py:25): look at its base: it overflowed, or is "
            "negative with a fraction as exponent, or 0 with a negative one");
  facts["nan"]["made"]["part"] = {{"index", {318}}, {"bad", 1}, {"total", 500}};
  EXPECT_TRUE(diagnose(facts).summary.ends_with("(replay.py:25), at [318] of what it made (1 of 500)"));
  facts["nan"]["made"] = {{"op", "softmax"}, {"finite", false}};
  const Finding masked = diagnose(facts);
  EXPECT_TRUE(masked.summary.ends_with("; `softmax` made it of a row that is -inf everywhere, or has an Inf"))
      << masked.summary;
  facts["nan"]["made"] = {{"op", "gelu"}};
  EXPECT_EQ(diagnose(facts).fix.at(0),
            "`gelu`: look at what goes into it, and at its roots, logarithms and divisions");
}

TEST(Nan, WhatAddsUpTo0HasNoProbabilities) {
  json facts = row_facts();
  facts["nan"] = {{"made", {{"op", "div"}, {"name", "share"}, {"text", "bleu / bleu.sum(1, keepdim=True)"}}},
                  {"command", "python main.py"}};
  const std::int64_t row = facts["tensor"]["shape"].back();
  facts["scan"]["bad"] = row;
  EXPECT_TRUE(
      says(diagnose(facts), "a row of zeros has no probabilities, and multinomial refuses it as well"));
  facts["scan"]["bad"] = row - 1;
  EXPECT_TRUE(says(diagnose(facts), "an epsilon added to it is right where"));
}

TEST(Nan, NumPysWarningLeadsToTheCast) {
  json facts = index_facts();
  facts["scan"]["value"] = "-9223372036854775808";
  facts["scan"]["reason"] = 1;
  facts["numpy_cast"] = {{"file", "/home/u/prep.py"}, {"line", 4}, {"code", "codes = raw.astype(np.int64)"}};
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.cause, Cause::kNanToIndex);
  EXPECT_EQ(finding.fix.at(0),
            "NumPy warned of an invalid value in the cast in prep.py:4, `codes = raw.astype(np.int64)`: if a "
            "missing value goes into it, give it a number that stands for it alone, where it is missing by "
            "nature, or "
            "leave its row out, before");
}

TEST(CallersVariable, AnotherThatTheIndexWouldFit) {
  json facts = index_facts();
  facts["fits"] = {{"name", "points"}, {"shape", {496, 3}}};
  facts["values"] = {{400, 1}, {401, 1}};
  EXPECT_TRUE(
      says(diagnose(facts), "all of it would fit points [496, 3]: see whether the index was made for that"));
  json from_one = facts;
  from_one["values"] = {{from_one["scan"]["hi"], 2}};
  from_one["scan"]["min"] = 1;
  from_one["scan"]["max"] = from_one["scan"]["value"] = from_one["scan"]["hi"];
  EXPECT_FALSE(says(diagnose(from_one), "points"));  // 1 to n counts this very tensor
  facts["contract"] = "scatter.index";               // to write elsewhere is no advice
  EXPECT_FALSE(says(diagnose(facts), "points"));
}

TEST(CallersVariable, IsNamedBesideTheArgument) {
  json facts = index_facts();
  facts["variable"] = {{"name", "edge_index"}, {"index", {1, 3}}};
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.starts_with("gather: index[2] (edge_index[1, 3]) is 400, ")) << finding.summary;
  ASSERT_TRUE(finding.element->variable);
  EXPECT_EQ(to_text(*finding.element->variable), "edge_index[1, 3]");
}

TEST(CallersVariable, OfTheSamePlaceIsNoNewsInTheHeadline) {
  json facts = index_facts();
  facts["variable"] = {{"name", "cls"}, {"index", {2}}};
  Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.starts_with("gather: index[2] is 400, ")) << finding.summary;
  EXPECT_EQ(to_text(*finding.element->variable), "cls[2]");
  facts["variable"]["name"] = "index";
  EXPECT_FALSE(diagnose(facts).element->variable);
  facts["variable"] = {{"name", 7}, {"index", "x"}};
  EXPECT_FALSE(diagnose(facts).element->variable);
}

TEST(Nan, OfTheInput) {
  json facts = row_facts();
  facts["nan"] = {{"input", {{"name", "obs"}, {"index", {1, 1}}, {"value", "nan"}, {"module", "policy"}}},
                  {"situation", "policy"},
                  {"command", "python ppo.py"},
                  {"precision", {{"dtype", "float16"}, {"module", "policy"}}}};
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.summary,
            std::string(kRow) + "; the model's weights are finite, the input of `policy` is NaN: obs[1, 1]");
  EXPECT_TRUE(says(finding, "assert that `obs` is finite before the call"));
  EXPECT_TRUE(says(finding, "step() or reset()"));
  EXPECT_FALSE(says(finding, "temperature"));
  EXPECT_FALSE(says(finding, "--watch"));
}

TEST(Nan, OfFloat16) {
  json facts = row_facts();
  facts["nan"] = {{"precision", {{"dtype", "float16"}, {"module", "model"}, {"by", "parameters"}}},
                  {"situation", "generation"},
                  {"command", "python chat.py ..."}};
  facts["resizable"] = "model";
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.summary, std::string(kRow) +
                                 "; the model's weights are finite, but `model` is float16, which ends at "
                                 "65504 and makes 0 of what is below 3e-8");
  EXPECT_EQ(finding.fix.front(),
            "load the model in bfloat16, which has the range of float32: from_pretrained(..., "
            "dtype=torch.bfloat16)");
  EXPECT_TRUE(says(finding, "trapline run --watch nan -- python chat.py ..."));
}

TEST(Nan, OfARowThatWasBanned) {
  json facts = row_facts();
  facts["nan"] = {{"banned", {{"name", "next_token_scores"}, {"row", 1}}},
                  {"precision", {{"dtype", "float16"}, {"module", "model"}}},
                  {"command", "python chat.py"}};
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.summary,
            std::string(kRow) +
                "; every score of row 1 is -inf in `next_token_scores`: nothing is left to draw "
                "from, and softmax makes NaN of it");
  EXPECT_EQ(finding.fix.size(), 2U);
  EXPECT_TRUE(says(finding, "leave row 1 out before the call"));
}

// A price that was not scaled: two steps later the hidden layer overflows, and no record is at fault.
TEST(Nan, WeightsThatHaveGrownAreTold) {
  json facts = row_facts();
  facts["weights"]["grown"] = {{"name", "model.trunk[0].weight"}, {"value", 2.47275e19}};
  facts["nan"] = {{"trains", true}, {"command", "python prices.py"}};
  const Finding finding = diagnose(facts);
  EXPECT_EQ(
      finding.summary,
      std::string(kRow) + "; the model's weights are finite, but `model.trunk[0].weight` goes to 2.47e+19");
  EXPECT_TRUE(says(finding, "training has diverged: bring inputs and targets to a scale of about 1"));
  EXPECT_TRUE(says(finding, "--watch nan -- python prices.py"));
  EXPECT_FALSE(says(finding, "check the data"));
}

TEST(Nan, WithoutACauseTheWatchIsTheNextCommand) {
  json facts = row_facts();
  facts["nan"] = {{"situation", "policy"}, {"trains", true}, {"command", "python ppo.py"}};
  Finding finding = diagnose(facts);
  EXPECT_EQ(finding.summary, std::string(kRow) + "; the model's weights are finite");
  EXPECT_EQ(finding.fix.front(),
            "let the layer be named that made the first NaN: trapline run --watch nan -- python ppo.py");
  EXPECT_TRUE(says(finding, "action mask"));
  EXPECT_FALSE(says(finding, "temperature"));
  facts["nan"] = {{"situation", "generation"}};
  finding = diagnose(facts);
  EXPECT_TRUE(says(finding, "temperature"));
  EXPECT_FALSE(says(finding, "--watch"));
}

TEST(Nan, WordsOfTextOnlyWhereTextIsWritten) {
  json facts = row_facts();
  EXPECT_TRUE(says(diagnose(facts), "a softmax over a row in which every score is -inf"));
  for (const char* words : {"top-k", "token", "bad-word", "temperature must"})
    EXPECT_FALSE(says(diagnose(facts), words)) << words;
  facts["nan"] = {{"banned", {{"name", "logits"}, {"row", 1}}}};
  for (const char* words : {"top-k", "bad words", "prefix_allowed"})
    EXPECT_FALSE(says(diagnose(facts), words)) << words;
  facts["nan"]["situation"] = "generation";
  EXPECT_TRUE(says(diagnose(facts), "(top-k, top-p, bad words, prefix_allowed_tokens_fn)"));
  facts["nan"] = {{"situation", "generation"}};
  EXPECT_TRUE(says(diagnose(facts), "keep at least one token in top-k"));
  json infinite = row_facts(4, "inf");
  EXPECT_FALSE(says(diagnose(infinite), "temperature must"));
  EXPECT_TRUE(says(diagnose(infinite), "if the scores are divided by a temperature"));
}

TEST(Nan, AnIndexThatBrokenWeightsHaveMade) {
  json facts = index_facts();
  facts["tensor"]["shape"] = {96, 1};
  facts["index"] = {0, 0};
  facts["values"] = {{-1, 96}};
  facts["scan"] = {{"bad", 96}, {"total", 96}, {"first", 0}, {"value", -1}, {"lo", 0},
                   {"hi", 3},   {"reason", 1}, {"min", -1},  {"max", -1}};
  EXPECT_TRUE(says(diagnose(facts), "all 96 are -1"));
  facts["weights"] = {{"name", "network.bn.weight"}, {"bad", 7}, {"total", 9}};
  const Finding f = diagnose(facts);
  EXPECT_NE(
      f.summary.find("; the weights are NaN or Inf already: 7 of 9 parameters, `network.bn.weight` first"),
      std::string::npos)
      << f.summary;
  EXPECT_FALSE(says(f, "clamp"));
  EXPECT_TRUE(says(f, "an earlier step broke the weights"));
}

TEST(Nan, OfWeightsThatNothingTrains) {
  json facts = row_facts();
  facts["weights"] = {{"name", "model[0].weight"}, {"bad", 1}, {"total", 4}};
  facts["nan"] = {{"trains", false}};
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("if they were loaded so, look at the checkpoint"));
  facts["nan"] = {{"trains", true}};
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with("if an earlier step broke the weights"));
}

TEST(Nan, OfDataThatBrokeTheWeights) {
  json facts = row_facts();
  facts["weights"] = {{"name", "noise"}, {"bad", 4}, {"total", 4}};
  facts["nan"] = {{"input", {{"name", "depth"}, {"index", {17}}, {"value", "nan"}}}};
  EXPECT_FALSE(says(diagnose(facts), "depth"));  // a model may have computed it, with such weights
  facts["nan"]["data"] = true;
  EXPECT_EQ(diagnose(facts).fix.front(),
            "depth[17] is NaN itself, which no step made: a missing value there breaks the weights in one "
            "step; fill it in, or leave its row out");
}

TEST(Nan, OfACast) {
  json facts = index_facts();
  facts["scan"]["value"] = "-9223372036854775808";
  facts["scan"]["reason"] = 1;
  facts["nan"] = {{"input", {{"name", "x"}, {"index", {2}}, {"value", "nan"}}}};
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.summary,
            "gather: index[2] is -9223372036854775808, which is what a cast to an integer makes of NaN or "
            "Inf; x[2] "
            "is NaN");
}

TEST(Nan, FactsOfTheWrongKindAreLeftOut) {
  EXPECT_FALSE(read_nan({{"nan", "x"}}));
  const auto nan = read_nan({{"nan",
                              {{"input", {{"name", "x"}, {"index", {1.5}}, {"value", "nan"}}},
                               {"precision", 7},
                               {"banned", json::array()},
                               {"trains", "no"},
                               {"command", nullptr}}}});
  ASSERT_TRUE(nan);
  EXPECT_FALSE(nan->input);
  EXPECT_EQ(nan->half + nan->banned + nan->command, "");
  EXPECT_TRUE(nan->trains);
}

TEST(LayerName, OfANumber) {
  EXPECT_EQ(layer_name("fc.5", '`'), "`fc.5`");
  EXPECT_EQ(layer_name("model[2]", '"'), "\"model[2]\"");
  EXPECT_EQ(layer_name("2", '`'), "layer 2");
  EXPECT_EQ(layer_name("", '`'), "");
}

TEST(Nan, OneInfinityLessAnother) {
  json facts = row_facts();
  facts["nan"] = {{"apart", {{"text", "2 * log_e - log_a"}, {"line", 24}}}, {"situation", "generation"}};
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.summary,
            std::string(kRow) +
                "; `2 * log_e - log_a` (line 24) takes one infinity from another there, which is NaN");
  EXPECT_EQ(finding.fix.front(),
            "put the mask's -inf into what comes out of `2 * log_e - log_a`, and into neither of the two");
  ASSERT_EQ(finding.fix.size(), 1U);  // neither the command that names a layer nor the data
}

}  // namespace
}  // namespace trapline::diagnose
