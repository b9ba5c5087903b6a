// Advice that a first look at programs of others found to do harm, and what is said instead.
#include <limits>

#include "advice.hpp"
#include "host_words.hpp"

namespace trapline::diagnose {
namespace {

Finding host(const char* exception, const char* message, json more = json::object()) {
  json facts{{"exception", exception}, {"message", message}};
  facts.update(more);
  return explained(facts);
}

// A cosine between -1 and 1 lacks no sigmoid, which would leave all pairs near 0.5.
TEST(AdviceHarm, AnUnseenCastMayHaveMetInfinity) {
  const Finding f = diagnose(facts_of("embedding.indices", std::numeric_limits<std::int64_t>::min(), 16));
  EXPECT_TRUE(says(f, "NaN or Inf goes into it, of 0/0 or log(0); or a missing value")) << all(f);
  EXPECT_TRUE(says(f, "find where the NaN or Inf begins")) << all(f);
}

TEST(AdviceHarmValues, ACosineIsNoRawScore) {
  json facts = facts_of("binary_cross_entropy.self", 0, 1);
  facts["scan"]["value"] = facts["scan"]["min"] = -0.25;
  facts["scan"]["is_float"] = true;
  facts["scan"]["max"] = 0.75;
  Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("takes probabilities in [0, 1]")) << finding.summary;
  EXPECT_EQ(finding.fix.front(), "look at where the input is computed: 1 of 4 is outside [0, 1]");
  EXPECT_TRUE(says(finding, "if a layer puts them out as raw scores, the sigmoid is missing: F.binary_cross"))
      << all(finding);
  facts["squashed"] = "raw";
  finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("the sigmoid is missing")) << finding.summary;
  for (const auto& [by, what, fix] :
       {std::array{"cosine", ": a cosine lies in [-1, 1]", "F.cosine_embedding_loss"},
        std::array{"tanh", ": a tanh puts out [-1, 1]", "in place of the tanh"},
        std::array{"log", ": these are logarithms", "input.exp()"}}) {
    facts["squashed"] = by;
    finding = diagnose(facts);
    EXPECT_TRUE(finding.summary.ends_with(what)) << finding.summary;
    EXPECT_EQ(finding.fix.size(), 1U) << all(finding);
    EXPECT_TRUE(says(finding, fix)) << all(finding);
  }
}

TEST(AdviceHarm, WhereALibraryKeepsNumberZeroNothingIsShifted) {
  json ids = facts_of("embedding.indices", 3, 3, {{"scan", {{"total", 48}, {"bad", 14}, {"min", 1}}}});
  EXPECT_TRUE(says(diagnose(ids), "counted from 1")) << all(diagnose(ids));
  ids["library"] = {
      {"owner", "fastai"}, {"maker", "TabularModel"}, {"owners", {"fastai.tabular.model.TabularModel"}}};
  ids["layer"] = layer("embeds.0", "num_embeddings", 3);
  EXPECT_TRUE(says(diagnose(ids), "emb_szs=get_emb_sz(to)")) << all(diagnose(ids));
  EXPECT_FALSE(says(diagnose(ids), "counted from 1")) << all(diagnose(ids));
}

TEST(AdviceHarm, APartOfATableIsNotMadeLarger) {
  json ids = facts_of("embedding.indices", 9, 8);
  ids["layer"] = layer("shards.0", "num_embeddings", 8);
  EXPECT_FALSE(says(diagnose(ids), "parts of one")) << all(diagnose(ids));
  ids["layer"]["siblings"] = {{"count", 4}, {"rows", 32}};
  const Finding finding = diagnose(ids);
  EXPECT_TRUE(finding.fix.front().starts_with("if the 4 tables of this list are parts of one with 32 rows"))
      << all(finding);
  ids["scan"]["value"] = 32;  // no part of such a table has it
  EXPECT_FALSE(says(diagnose(ids), "parts of one")) << all(diagnose(ids));
}

// A metric that leaves out 0, the padding, and is given -100 as well: one setting holds one mark.
TEST(AdviceHarm, AMarkThatIsLeftOutAlreadyIsNotForgotten) {
  json facts = facts_of("index.indices", -100, 60, {{"scan", {{"lo", -60}}}});
  facts["library"] = {{"caller", "torchmetrics"}, {"callers", {"torchmetrics.metric.Metric"}}};
  facts["library"]["settings"] = {{"ignore_index", {-100}}};
  EXPECT_FALSE(says(diagnose(facts), "leaves out now")) << all(diagnose(facts));
  facts["library"]["settings"]["ignore_index"] = {0};
  EXPECT_TRUE(says(diagnose(facts), "ignore_index=-100, and mark what it leaves out now (0) with -100, too"))
      << all(diagnose(facts));
}

// RoBERTa gathers its token types by the positions: a layer that is as wide is not their table.
TEST(AdviceHarm, ALayerOfThatWidthIsNoPositionTable) {
  json facts = facts_of("gather.index", 64, 64);
  facts["table"] = "position";
  facts["layer"] = layer("encoder.dense", "out_features", 64);
  facts["position"] = {{"name", "position_embeddings"}, {"rows", 64}, {"value", 64}, {"offset", 2}};
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.cause, Cause::kPositionIndexOutOfRange);
  EXPECT_NE(finding.summary.find("the position table `position_embeddings` has 64 rows"), std::string::npos)
      << finding.summary;
  EXPECT_FALSE(finding.layer);
}

TEST(AdviceHarm, WhatMinusOneStandsForWhereTheSourceSaysIt) {
  const json codes = {{"text", "df['city'].cat.codes"}, {"line", 8}, {"of", "missing"}};
  json ids = facts_of("embedding.indices", -1, 9);
  EXPECT_TRUE(says(diagnose(ids), "see what -1 stands for")) << all(diagnose(ids));
  ids["codes"] = codes;
  EXPECT_FALSE(says(diagnose(ids), "if -1")) << all(diagnose(ids));
  EXPECT_TRUE(says(diagnose(ids),
                   "`df['city'].cat.codes` (line 8) has -1 for a missing value: see what it is there; only "
                   "what is really missing gets a row"))
      << all(diagnose(ids));
  json labels = facts_of("nll_loss_forward.target", -1, 9);
  EXPECT_TRUE(says(diagnose(labels), "if -1 marks")) << all(diagnose(labels));
  labels["codes"] = codes;
  labels["codes"]["of"] = "unknown";
  const Finding finding = diagnose(labels);
  EXPECT_FALSE(says(finding, "if -1")) << all(finding);
  EXPECT_NE(finding.summary.find("(line 8) has -1 for a value that is not in the index"), std::string::npos);
}

TEST(AdviceHarm, PaddingStandsBesideWhatItPads) {
  json ids = facts_of("embedding.indices", -1, 32, {{"table", "token"}});
  EXPECT_TRUE(says(diagnose(ids), "if -1 marks padding")) << all(diagnose(ids));
  ids["scan"].update({{"bad", 96}, {"total", 96}, {"max", -1}});
  const Finding finding = diagnose(ids);
  EXPECT_EQ(all(finding).find("padding"), std::string::npos) << all(finding);
  EXPECT_FALSE(says(finding, "if -1 marks")) << all(finding);
  EXPECT_FALSE(says(finding, "see what -1 stands for")) << all(finding);
  EXPECT_TRUE(says(finding, "look at where the ids are computed")) << all(finding);
}

TEST(AdviceHarm, NoRecordIsDroppedForANumberThatTheProgramMade) {
  json target = facts_of("binary_cross_entropy.target", 0, 1);
  target["tensor"]["dtype"] = "float32";
  target["values"] = json::array({json::array({1.05, 1})});
  target["scan"].update(
      {{"value", 1.05}, {"total", 24}, {"min", 0.04}, {"max", 1.05}, {"reason", 2}, {"is_float", true}});
  EXPECT_TRUE(says(diagnose(target), "correct that record if wrong")) << all(diagnose(target));
  target["sample"] = {{"batch", 0}, {"by", "hand"}, {"one_of", {0, 1}}, {"of", 2}};
  const Finding finding = diagnose(target);
  EXPECT_FALSE(says(finding, "drop")) << all(finding);
  EXPECT_TRUE(says(finding, "look at where the target is computed: 1 of 24 is outside [0, 1]"))
      << all(finding);
}

TEST(AdviceHarm, NoRowIsDroppedWhereTheBatchIsFinite) {
  json index = facts_of("gather.index", std::numeric_limits<std::int64_t>::min() + 22, 216);
  EXPECT_TRUE(says(diagnose(index), "or a missing value: give it a number that stands for it alone"))
      << all(diagnose(index));
  for (const char* by : {"row", "hand"}) {
    index["sample"] = {{"batch", 2}, {"by", by}};
    index["batch_is_finite"] = true;
    const Finding finding = diagnose(index);
    EXPECT_EQ(all(finding).find("drop"), std::string::npos) << all(finding);
    EXPECT_TRUE(says(finding, "what the batch holds is finite: arithmetic before the cast")) << all(finding);
  }
  index["sample"] = {{"batch", 2}, {"row", 1}};  // the loader's own: cast where it was loaded
  EXPECT_TRUE(says(diagnose(index), "or a missing value: give it a number that stands for it alone"))
      << all(diagnose(index));
}

TEST(AdviceHarm, TheLabelsOfALoss) {
  json index = facts_of("scatter.index", 11, 10, {{"table", "labels"}, {"values", {{11, 1}, {10, 1}}}});
  const Finding finding = diagnose(index);
  EXPECT_EQ(info(finding.cause).code, "TL101");
  EXPECT_EQ(finding.also, (std::vector<Cause>{Cause::kNumClassesMismatch, Cause::kIndexOutOfRange}));
  EXPECT_TRUE(says(finding, "kinds = sorted(set(labels))")) << all(finding);
  EXPECT_FALSE(says(finding, "give what they index")) << "four labels say nothing of a size";
  index["counted"] = {{"count", 12}, {"of", "the number of the data set's classes"}};
  const Finding counted = diagnose(index);
  EXPECT_EQ(info(counted.cause).code, "TL102");
  EXPECT_NE(counted.summary.find("and the number of the data set's classes is 12"), std::string::npos);
  EXPECT_TRUE(says(counted, "give what they index (the scores, or what makes them one-hot) 12 classes"))
      << all(counted);
  json below = facts_of("gather.index", -1, 10, {{"table", "labels"}});
  EXPECT_EQ(info(diagnose(below).cause).code, "TL101");
}

TEST(AdviceHarmHost, TheSizesOfCtcLoss) {
  const char* message = "input_lengths must be of size batch_size";
  const json operands = {operand("log_probs", "log_probs", {6, 21, 39}),
                         operand("lengths", "input_lengths", {6}, "int64")};
  const Finding f = host("RuntimeError", message, {{"operands", operands}});
  EXPECT_EQ(info(f.cause).code, "TL201");
  EXPECT_EQ(f.summary,
            "ctc_loss: lengths has 6 lengths, but log_probs [6, 21, 39] holds 21 samples: it is [time, "
            "batch, classes]");
  EXPECT_TRUE(says(f, "`log_probs.transpose(0, 1)`")) << all(f);
  const json fewer = {operand("log_probs", "log_probs", {21, 6, 39}),
                      operand("lengths", "input_lengths", {5}, "int64")};
  const Finding other = host("RuntimeError", message, {{"operands", fewer}});
  EXPECT_TRUE(says(other, "give one number for each sample")) << all(other);
  EXPECT_EQ(other.argument, "input_lengths");
  const Finding sizes =
      host("RuntimeError",
           "Expected tensor to have size at least 5 at dimension 1, but got size 4 for argument "
           "#2 'targets' (while checking arguments for ctc_loss_gpu)");
  EXPECT_EQ(sizes.summary,
            "ctc_loss: targets: expected tensor to have size at least 5 at dimension 1, but got size 4");
  EXPECT_TRUE(says(sizes, "padded to the longest target_length")) << all(sizes);
  EXPECT_EQ(info(host("RuntimeError", "target_lengths must be integral").cause).code, "TL203");
}

TEST(AdviceHarmHost, AnIndexOfASparseProduct) {
  const Finding f = host("RuntimeError", "addmm: index out of row bound: 3 not between 1 and 3");
  EXPECT_EQ(info(f.cause).code, "TL105");
  EXPECT_EQ(f.summary, "sparse product: the row index 3 is outside [0, 3), the sparse tensor has 3 rows");
  EXPECT_TRUE(says(f, "they are 0 to 2, and these may be counted from 1")) << all(f);
}

TEST(AdviceHarmHost, NothingIsMovedToMeta) {
  json weight = operand("head.weight", "weight", {1, 12}, "float32", "meta");
  weight["user"] = false;
  const Finding f = host("RuntimeError", "Tensor on device meta is not on the expected device cpu!",
                         {{"operands", {operand("x", "input", {16, 12}), weight}}});
  EXPECT_EQ(info(f.cause).code, "TL202");
  EXPECT_EQ(f.summary,
            "head.weight is on meta: it has a size and no data, so no checkpoint that was loaded has it");
  EXPECT_FALSE(says(f, "to(\"meta\")")) << all(f);
  EXPECT_TRUE(says(f, "of this part alone")) << all(f);
  EXPECT_TRUE(says(f, "head.to_empty(device=\"cpu\")")) << all(f);
}

TEST(AdviceHarmHost, ACountThatIsTooLongIsNoBatch) {
  const json count{{"operands", {operand("hist", "", {1277}, "int64")}}, {"call", "hist.reshape(5, 5)"}};
  const Finding f = host("RuntimeError", "shape '[5, 5]' is invalid for input of size 1277", count);
  EXPECT_FALSE(says(f, "batch")) << all(f);
  EXPECT_TRUE(says(f, "a target of 255 made it longer")) << all(f);
}

TEST(AdviceHarmHost, TheBatchIsNamedWhereItsSizeWouldFit) {
  const Finding fits = host("RuntimeError", "shape '[16, 10]' is invalid for input of size 120",
                            {{"operands", {operand("x", "", {12, 10})}}, {"call", "x.view(16, 10)"}});
  EXPECT_TRUE(says(fits, "the batch holds 12, not 16")) << all(fits);
  const Finding other = host("RuntimeError", "shape '[16, 10]' is invalid for input of size 132",
                             {{"operands", {operand("x", "", {12, 11})}}, {"call", "x.view(16, 10)"}});
  EXPECT_FALSE(says(other, "the batch holds")) << all(other);
}

TEST(AdviceHarmHost, LengthsOfCtcAreThoseOfTheNetworksOutput) {
  json facts{{"operands", {operand("widths", "input_lengths", {6}, "int64")}}};
  facts["element"] = {{"index", {2}}, {"value", 48}, {"bad", 6}, {"total", 6}};
  const Finding f = host("RuntimeError",
                         "Expected input_lengths to have value at most 16, but got value 48 (while checking "
                         "arguments for ctc_loss_allocate_outputs)",
                         facts);
  EXPECT_EQ(info(f.cause).code, "TL201");
  EXPECT_EQ(f.summary, "ctc_loss: widths[2] is 48, but log_probs has 16 time steps");
  ASSERT_TRUE(f.element);
  EXPECT_EQ(f.element->value, Scalar{std::int64_t{48}});
  EXPECT_TRUE(says(f, "shorten the lengths in the same way")) << all(f);
  const Finding below =
      host("RuntimeError", "Expected target_lengths to have value at least 0, but got value -1");
  EXPECT_EQ(below.summary, "ctc_loss: target_lengths is -1, but a length must not be negative");
}

TEST(AdviceHarmHost, ASizeThatEinopsCannotDivide) {
  const Finding f = host("RuntimeError", "Shape mismatch, can't divide axis of length 50 in chunks of 8",
                         {{"operands", {operand("x", "input", {8, 3, 48, 50})}}});
  EXPECT_EQ(f.summary, "einops: a dimension of x [8, 3, 48, 50] is 50 long, which is no multiple of 8");
  EXPECT_TRUE(says(f, "48 or 56")) << all(f);
}

TEST(AdviceHarmHost, WeightsAreCountedOverAllClasses) {
  const Finding f =
      host("RuntimeError",
           "weight tensor should be defined either for all 6 classes or no classes but got weight "
           "tensor of shape: [5]");
  EXPECT_TRUE(says(f, "torch.bincount(labels, minlength=6)")) << all(f);
  EXPECT_TRUE(says(f, "the outputs stay 6")) << all(f);
}

TEST(AdviceHarmValues, OnePositionAfterTheOtherIsNoTextToCut) {
  const json one{{"index", {0}},
                 {"tensor", {{"shape", {1}}}},
                 {"table", "position"},
                 {"sequence", "ids"},
                 {"scan", {{"bad", 1}, {"total", 1}, {"first", 0}, {"min", 48}, {"max", 48}}}};
  const Finding f = diagnose(facts_of("embedding.indices", 48, 48, one));
  EXPECT_EQ(info(f.cause).code, "TL104");
  EXPECT_FALSE(says(f, "truncate")) << all(f);
  EXPECT_TRUE(says(f, "generate fewer tokens")) << all(f);
}

TEST(AdviceHarmValues, ComputedTargetsAreNoRecords) {
  json facts =
      facts_of("binary_cross_entropy.target", 1, 1, {{"variable", {{"name", "soft"}, {"index", {3}}}}});
  facts["tensor"] = {{"shape", {18}}, {"dtype", "float32"}, {"device", "cpu"}};
  facts["scan"].update(
      {{"bad", 2}, {"total", 18}, {"value", 1.024}, {"min", 0.05}, {"max", 1.024}, {"is_float", true}});
  facts["values"] = json::array({json::array({1.024, 2})});
  EXPECT_TRUE(says(diagnose(facts), "correct those records if wrong"));
  facts["sample"] = {{"batch", 1}, {"row", 3}, {"dataset_index", 72}, {"by", "function"}, {"likely", true}};
  const Finding f = diagnose(facts);
  EXPECT_FALSE(says(f, "drop")) << all(f);
  EXPECT_TRUE(says(f,
                   "look at where `soft` is computed from what the batch holds: 2 of 18 are "
                   "outside [0, 1]"))
      << all(f);
}

TEST(AdviceHarmValues, IdsThatAreComputedAreLookedAtBeforeTheTable) {
  json facts = facts_of("embedding.indices", 80, 75,
                        {{"variable", {{"name", "x"}, {"index", {0, 2}}}},
                         {"scan", {{"bad", 11}, {"total", 24}, {"min", 43}, {"max", 83}}}});
  facts["tensor"]["shape"] = {8, 3};
  facts["index"] = {0, 2};
  facts["sample"] = {{"batch", 0}, {"by", "function"}, {"likely", true}};
  const Finding f = diagnose(facts);
  ASSERT_GE(f.fix.size(), 2U) << all(f);
  EXPECT_EQ(f.fix[0],
            "look at where `x` is computed from what the batch holds: 11 of 24 are outside [0, 75)");
  EXPECT_TRUE(f.fix[1].starts_with("where columns share a table")) << all(f);
}

TEST(AdviceHarmValues, ANanOfArithmeticIsNoMissingValue) {
  json facts = facts_of(
      "gather.index", -1, 256,
      {{"nan_cast",
        {{"frame", {{"file", "a.py"}, {"line", 7}, {"function", "cells"}, {"code", "ij = unit.long()"}}},
         {"bad", 1}}}});
  EXPECT_TRUE(says(diagnose(facts), "NaN goes into the cast in `ij = unit.long()`: 0/0"));
  facts["nan_cast"]["value"] = "-inf";  // a pitch of 0 Hz
  EXPECT_TRUE(
      says(diagnose(facts), "-inf goes into the cast in `ij = unit.long()`: see what gives it (the log of 0"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "drop")) << all(diagnose(facts));
  facts["nan_cast"]["value"] = "nan";
  EXPECT_TRUE(says(diagnose(facts), "or one that is missing in the data")) << all(diagnose(facts));
  facts["sample"] = {{"batch", 1}, {"row", 5}, {"dataset_index", 19}, {"by", "row"}, {"likely", true}};
  const Finding f = diagnose(facts);
  EXPECT_EQ(info(f.cause).code, "TL108");
  EXPECT_FALSE(says(f, "missing")) << all(f);
  EXPECT_FALSE(says(f, "nan_to_num")) << all(f);
  EXPECT_TRUE(says(f, "what the batch holds is finite")) << all(f);
}

TEST(AdviceHarmValues, APointerThatRunsOverTheEndIsNotWrappedUnasked) {
  const json run{{"index", {2}},
                 {"tensor", {{"shape", {12}}}},
                 {"variable", {{"name", "slots"}, {"index", {2}}}},
                 {"scan", {{"bad", 10}, {"total", 12}, {"first", 2}, {"min", 48}, {"max", 59}}}};
  const Finding over = diagnose(facts_of("index_copy.index", 50, 50, run));
  EXPECT_TRUE(says(over, "goes on at the start, and only where the oldest may be overwritten")) << all(over);
  EXPECT_TRUE(says(over, "10 places too few")) << all(over);
  EXPECT_FALSE(says(over, "%")) << all(over);
  json scattered = run;
  scattered["scan"]["total"] = 64;
  EXPECT_FALSE(says(diagnose(facts_of("index_copy.index", 50, 50, scattered)), "at the start"));
}

// Edits under an "if" that nothing proves: where it does not hold, they hide the fault without a word.
TEST(AdviceHarmPremise, AClassIsNotIgnoredBecauseOneWasTakenOff) {
  json facts{{"scan", {{"bad", 7}, {"total", 40}, {"min", -1}, {"max", 3}}}, {"values", {{-1, 7}}}};
  // Among so few labels a rare class may be missing.
  EXPECT_TRUE(says(diagnose(facts_of("nll_loss_forward.target", -1, 5, facts)), "ignore_index=-1"));
  facts["scan"]["bad"] = facts["values"][0][1] = 27;
  facts["scan"]["total"] = 160;
  const Finding shifted = diagnose(facts_of("nll_loss_forward.target", -1, 5, facts));
  EXPECT_NE(shifted.summary.find("labels run from -1 to 3, as many as there are classes"), std::string::npos)
      << shifted.summary;
  EXPECT_FALSE(says(shifted, "ignore_index=-1")) << all(shifted);
  facts["scan"]["max"] = 4;  // all classes are there, and -1 beside them
  EXPECT_TRUE(says(diagnose(facts_of("nll_loss_forward.target", -1, 5, facts)), "ignore_index=-1"));
}

TEST(AdviceHarmPremise, AMaskIsDividedWhereItIsOne) {
  const auto target = [](json shape, json kinds, json values) {
    json facts = facts_of("binary_cross_entropy.target", 255, 1,
                          {{"kinds", std::move(kinds)}, {"values", std::move(values)}});
    facts["tensor"] = {{"shape", std::move(shape)}, {"dtype", "float32"}};
    facts["scan"].merge_patch({{"bad", 9}, {"total", 64}, {"value", 255.0}, {"min", 0.0}, {"max", 255.0}});
    return diagnose(facts);
  };
  const json values = json::array({json::array({255.0, 9})});
  const json white = {{"whole", true}, {"zero", true}, {"one", false}};
  const json classes = {{"whole", true}, {"zero", true}, {"one", true}};
  EXPECT_TRUE(says(target({1, 8, 8}, white, values), "target = target / 255"));
  EXPECT_FALSE(says(target({64}, white, values), "/ 255")) << "64 numbers are no picture";
  const Finding mark = target({1, 8, 8}, classes, values);
  EXPECT_TRUE(says(mark, "255 stands beside 1, so it is no white")) << all(mark);
  EXPECT_TRUE(says(mark, "keep = target != 255")) << all(mark);
  EXPECT_FALSE(says(mark, "/ 255")) << all(mark);
}

TEST(AdviceHarmPremise, NothingIsDrawnWhereAllWeightsAreZero) {
  json facts = facts_of("multinomial.self", 0, 0);
  facts["scan"].merge_patch({{"reason", 6}});
  for (const std::string& fix : diagnose(facts).fix)
    EXPECT_EQ(fix.find("keepdim"), std::string::npos) << "uniform weights would draw what a mask forbids";
}

TEST(AdviceHarmPremise, OnlyKnownMarksAreIgnored) {
  EXPECT_TRUE(says(host("IndexError", "Target -1 is out of bounds."), "ignore_index=-1"));
  EXPECT_FALSE(says(host("IndexError", "Target -3 is out of bounds."), "ignore_index"));
  EXPECT_TRUE(says(host("IndexError", "Target 255 is out of bounds."), "ignore_index=255"));
  EXPECT_FALSE(says(host("IndexError", "Target 17 is out of bounds."), "ignore_index"));
}

TEST(AdviceHarmPremise, OneHotIsNotAsWideAsABatch) {
  const Finding f = host("RuntimeError", "Class values must be smaller than num_classes.",
                         {{"operands", {operand("labels", "", {8}, "int64")}}});
  EXPECT_FALSE(says(f, ".max() + 1")) << all(f);
  EXPECT_TRUE(says(f, "how many there are in all the data")) << all(f);
}

TEST(AdviceHarmValues, ARateThatGrewIsNoLogit) {
  json facts = facts_of("bernoulli.p", 1, 1);
  facts["scan"].update(
      {{"bad", 144}, {"total", 144}, {"value", 1.005}, {"min", 1.005}, {"max", 1.005}, {"is_float", true}});
  facts["tensor"] = {{"shape", {144}}, {"dtype", "float32"}, {"device", "cpu"}};
  facts["values"] = json::array({json::array({1.005, 144})});
  const Finding f = diagnose(facts);
  EXPECT_FALSE(says(f, "logits")) << all(f);
  EXPECT_TRUE(says(f, "a schedule that goes beyond 1 needs a limit")) << all(f);
  EXPECT_FALSE(says(f, "percent")) << all(f);
  facts["scan"].update({{"value", 40.0}, {"min", 40.0}, {"max", 40.0}});
  EXPECT_TRUE(says(diagnose(facts), "in percent, divide by 100")) << all(diagnose(facts));
}

TEST(AdviceHarmValues, AnIndexMadeInsideALibraryIsHealedInTheUsersTensor) {
  const json crf{
      {"index", {0}},
      {"variable", {{"name", "tags"}, {"index", {0, 4}}}},
      {"library", {{"owner", "somecrf"}, {"caller", "CRF"}, {"around", json::array()}}},
      {"scan", {{"bad", 1}, {"total", 6}, {"lo", -5}, {"list_position", 1}, {"min", -100}, {"max", 4}}}};
  const Finding f = diagnose(facts_of("index.indices", -100, 5, crf));
  EXPECT_FALSE(says(f, "index.masked_fill")) << all(f);
  EXPECT_TRUE(says(f, "put 0 in its place in `tags` before CRF is called")) << all(f);
}

TEST(AdviceHarmValues, ARunningStatisticIsNamed) {
  json facts = facts_of("binary_cross_entropy.self", 0, 0,
                        {{"scan", {{"value", "nan"}, {"reason", 3}, {"is_float", true}}},
                         {"weights", {{"name", ""}, {"bad", 0}, {"total", 4}, {"buffer", "norm.mean"}}},
                         {"nan", {{"command", "python main.py"}}}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with(
      "; the weights are finite, but the buffer `norm.mean` of the model holds NaN"))
      << all(finding);
  EXPECT_TRUE(says(finding, "`norm.mean` holds it from before this call")) << all(finding);
  EXPECT_FALSE(says(finding, "--watch nan")) << all(finding);
}

TEST(AdviceHarmValues, EdgesThatBatchingMovedWrongly) {
  const Finding finding =
      diagnose(facts_of("scatter_add.index", 43, 43,
                        {{"raised", {{"attribute", "edge_index_t"}, {"value", 9}, {"nodes_of", "x_t"}}}}));
  EXPECT_TRUE(
      finding.summary.ends_with("in its own graph it is 9: batching added to `edge_index_t` what is not the "
                                "number of nodes in `x_t` of the graphs before"))
      << all(finding);
  ASSERT_EQ(finding.fix.size(), 1U) << all(finding);
  EXPECT_TRUE(says(finding, "self.x_t.size(0) for `edge_index_t`")) << all(finding);
}

TEST(AdviceHarmValues, AnIdThatAModelHasChosen) {
  json facts = facts_of("embedding.indices", 37, 37, {{"no_grad", true}, {"newest", true}});
  EXPECT_TRUE(says(diagnose(facts), "cut them before the choice, logits[..., :37]")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "more rows than")) << all(diagnose(facts));
  facts["newest"] = false;
  EXPECT_FALSE(says(diagnose(facts), "before the choice")) << all(diagnose(facts));
}

TEST(AdviceHarmValues, AnIdThatDidNotFitItsType) {
  const auto of = [](std::int64_t value, std::int64_t hi) {
    return diagnose(facts_of("embedding.indices", value, hi));
  };
  EXPECT_TRUE(says(of(-106, 160), "-106 is also what 150 becomes in int8")) << all(of(-106, 160));
  EXPECT_FALSE(says(of(-106, 150), "int8")) << all(of(-106, 150));
  EXPECT_TRUE(says(of(-25536, 50000), "40000 becomes in int16")) << all(of(-25536, 50000));
}

TEST(AdviceHarmValues, OneTargetOutsideIsARecord) {
  const auto of = [](int bad) {
    return diagnose(facts_of(
        "binary_cross_entropy.target", 0, 0,
        {{"values", json::array({json::array({1.5, bad})})},
         {"scan", {{"bad", bad}, {"value", 1.5}, {"max", 1.5}, {"reason", 2}, {"is_float", true}}}}));
  };
  EXPECT_FALSE(says(of(1), "mse_loss")) << all(of(1));
  EXPECT_TRUE(says(of(1), "correct that record if wrong")) << all(of(1));
  EXPECT_TRUE(says(of(3), "mse_loss")) << all(of(3));
}

TEST(AdviceHarmValues, TheVeryEndOfARangeThatIsCut) {
  json table =
      facts_of("embedding.indices", 100, 100, {{"scan", {{"total", 400}, {"min", 0}, {"max", 100}}}});
  table["computed"] = {{"name", "bin"}, {"text", "(angle / step).floor().long()"}, {"line", 9}};
  EXPECT_TRUE(says(diagnose(table), "its very end gives 100: say where that belongs, in the last part (99)"))
      << all(diagnose(table));
  table["computed"]["text"] = "place + first";  // nothing is cut
  EXPECT_FALSE(says(diagnose(table), "its very end")) << all(diagnose(table));
}

}  // namespace
}  // namespace trapline::diagnose
