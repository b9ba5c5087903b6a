// What a report says holds in the program that it is about, and what it advises hides nothing.
#include <limits>

#include "advice.hpp"
#include "reading.hpp"
#include "watch_facts.hpp"

namespace trapline::diagnose {
namespace {

json ids_of_whole(std::int64_t kinds) {
  json ids = facts_of("embedding.indices", 11, 5, {{"scan", {{"bad", 4}, {"total", 8}, {"min", 3}}}});
  ids["layer"] = layer("kinds", "num_embeddings", 5);
  ids["seen"] = {{"min", 3}, {"max", 11}, {"count", 160}, {"source", "dataset"}, {"kinds", kinds}};
  return ids;
}

// Codes of a longer list (ASPRS's 1 to 6, and one 18): numbers that are counted use their places.
TEST(AdviceTrue, FewCodesAreNotCountedFromOne) {
  const auto from_one = [](const char* source, const char* key, std::int64_t kinds) {
    json seen = {{"min", 1}, {"max", 18}, {"count", 2400}, {"source", source}};
    seen[key] = kinds;
    return says(diagnose(facts_of("index_select.index", 18, 18,
                                  {{"scan", {{"total", 480}, {"bad", 20}, {"min", 1}, {"max", 18}}},
                                   {"sample", {{"dataset_index", 3}}},
                                   {"seen", std::move(seen)}})),
                "counted from 1");
  };
  EXPECT_FALSE(from_one("calls", "here", 6));
  EXPECT_TRUE(from_one("calls", "here", 17));
  EXPECT_FALSE(from_one("dataset", "kinds", 6));
  EXPECT_TRUE(from_one("dataset", "kinds", 18));
}

TEST(AdviceTrue, WhoCountsFromOneHasTheLastNumberAsOftenAsOthers) {
  json facts = facts_of(
      "embedding.indices", 81, 81,
      {{"scan", {{"total", 336}, {"bad", 3}, {"min", 1}, {"max", 81}}}, {"sample", {{"dataset_index", 3}}}});
  EXPECT_TRUE(says(diagnose(facts), "counted from 1")) << all(diagnose(facts));
  facts["scan"]["bad"] = 1;
  EXPECT_FALSE(says(diagnose(facts), "counted from 1")) << all(diagnose(facts));
  facts["scan"]["bad"] = 3;
  facts["computed"] = {
      {"name", "row"}, {"text", "np.searchsorted(hours, start)"}, {"line", 9}, {"edges", 81}};
  EXPECT_FALSE(says(diagnose(facts), "counted from 1")) << "a search: " << all(diagnose(facts));
}

TEST(AdviceTrue, AsManyDifferentIdsAsRowsWantNumbersOfTheirOwn) {
  const Finding f = diagnose(ids_of_whole(5));
  EXPECT_TRUE(says(f, "the whole data set has just 5 different ones, from 3 to 11")) << all(f);
  EXPECT_FALSE(says(f, "12")) << "no larger table: " << all(f);
  EXPECT_TRUE(says(diagnose(ids_of_whole(9)), "of the two is meant")) << all(diagnose(ids_of_whole(9)));
}

TEST(AdviceTrue, TheSettingOfAModelThatTheProgramMakes) {
  json ids = facts_of("embedding.indices", 59, 54);
  ids["layer"] = layer("bert.sounds", "num_embeddings", 54);
  ids["table"] = "other";
  ids["setting"] = {{"name", "sound_vocab_size"}, {"value", 54}};
  EXPECT_TRUE(says(diagnose(ids), "only a model that is trained anew")) << all(diagnose(ids));
  ids["setting"]["fresh"] = true;
  ids["setting"]["made"] = {{"text", "sound_vocab_size=len(shapes)"}, {"file", "/a/main.py"}, {"line", 17}};
  ids["setting"]["other"] = {{"name", "shape_vocab_size"}, {"value", 62}};
  const Finding f = diagnose(ids);
  EXPECT_FALSE(says(f, "keep")) << "right ids are to stay: " << all(f);
  EXPECT_EQ(f.fix.front(),
            "config.sound_vocab_size=54 made this table, by `sound_vocab_size=len(shapes)` (main.py:17); "
            "config.shape_vocab_size=62 would have room for these ids: see that the two are not mixed up");
  EXPECT_FALSE(speaks_of_size(f)) << all(f);
  ids["setting"].erase("other");
  EXPECT_TRUE(says(diagnose(ids), "whether that is enough: config.sound_vocab_size=54 made this table, by "))
      << all(diagnose(ids));
}

TEST(AdviceTrue, ALimitHidesWhatHasLeftADomain) {
  for (const char* op : {"acosh", "acos", "sqrt", "log", "div", "exp"}) {
    const json watch = {{"what", "nan"}, {"kind", "loss"}, {"step", 3}, {"unit", "step"}, {"op", op}};
    EXPECT_TRUE(advises(watch, "find why")) << op;
    EXPECT_TRUE(advises(watch, "hides")) << op;
  }
}

TEST(AdviceTrue, WhatWasCutLayBeyondTheEnd) {
  json index = facts_of("index_select.index", 1000, 1000);
  index["computed"] = {{"name", "at"}, {"text", "(u * steps).long()"}, {"line", 42}, {"before", 1000.0}};
  EXPECT_TRUE(
      says(diagnose(index), "its very end gives 1000: say where that belongs, in the last part (999)"))
      << all(diagnose(index));
  index["computed"]["before"] = 1000.5;
  index["computed"]["source"] = {
      {"name", "u"}, {"index", {3}}, {"value", 1.0005}, {"text", "draw(n)"}, {"line", 38}};
  const Finding f = diagnose(index);
  EXPECT_FALSE(says(f, "very end")) << all(f);
  EXPECT_TRUE(says(f, "`u[3]` is 1.0005 there, beyond what gives 999: look at `u = draw(n)` (line 38)"))
      << all(f);
}

TEST(AdviceTrue, NothingIsMadeAHundredTimesAsLarge) {
  const auto of = [](const char* contract, std::int64_t value) {
    return diagnose(facts_of(contract, value, 12, {{"scan", {{"total", 64}}}}));
  };
  EXPECT_TRUE(says(of("index_add.index", 13), "only if that dimension is meant"))
      << all(of("index_add.index", 13));
  EXPECT_FALSE(says(of("index_add.index", 99), "only if that dimension is meant"))
      << all(of("index_add.index", 99));
  EXPECT_TRUE(says(of("index_select.index", 999999), "999999 is a usual fill value"));
  EXPECT_FALSE(says(of("index_select.index", 4321), "fill value"));
  json ids = facts_of("embedding.indices", 4000, 12, {{"layer", layer("kinds", "num_embeddings", 12)}});
  EXPECT_FALSE(says(diagnose(ids), "more than 12 ids")) << all(diagnose(ids));
}

// The number of an action among those of an environment, of which the model has fewer.
TEST(AdviceTrue, WhatChoosesAmongOutputsAsksForNoMoreOfThem) {
  json index = facts_of("gather.index", 3, 3, {{"scan", {{"bad", 11}, {"total", 32}, {"min", 0}}}});
  index["layer"] = layer("output", "out_features", 3);
  EXPECT_FALSE(speaks_of_size(diagnose(index))) << all(diagnose(index));
  EXPECT_TRUE(says(diagnose(index), "look at where the index is computed")) << all(diagnose(index));
  index["counted"] = {{"count", 6}, {"of", "env.action_space.n"}};
  EXPECT_TRUE(says(diagnose(index), "env.action_space.n is 6")) << all(diagnose(index));
}

TEST(AdviceTrue, ASizeThatIsAPowerOfItsSetting) {
  json index = facts_of("take.index", 71, 64);
  index["layer"] = {{"name", "score"}, {"type", "Parameter"}, {"attribute", "shape[0]"}, {"value", 64}};
  index["made"] =
      json::array({{{"text", "TOP=7"}, {"file", "/a/scores.py"}, {"line", 6}, {"computed", true}}});
  const Finding f = diagnose(index);
  EXPECT_TRUE(says(f, "by `TOP=7` (scores.py:6)")) << all(f);
  EXPECT_FALSE(says(f, "at least")) << all(f);
}

TEST(AdviceTrue, WhatWasReadToSayItIsNotWhatTheProgramSaw) {
  json ids = facts_of("embedding.indices", 8, 8, {{"layer", layer("keys", "num_embeddings", 8)}});
  ids["seen"] = {{"min", 0}, {"max", 8}, {"count", 40}, {"source", "dataset"}, {"several", true}};
  EXPECT_TRUE(says(diagnose(ids), "8 is the highest of 40 ids of this data set")) << all(diagnose(ids));
}

TEST(AdviceTrue, WhatIsMadeOneHotNeedBeNoLabel) {
  json field = facts_of("one_hot.self", -996, 37, {{"values", json::array({json::array({-996, 1})})}});
  field["variable"] = {{"name", "field"}, {"index", {3}}};
  field["origin"] = {{"file", "/a/main.py"}, {"line", 9}, {"code", "x = F.one_hot(field, self.classes)"}};
  const Finding f = diagnose(field);
  EXPECT_TRUE(says(f, "a value must not be negative")) << all(f);
  EXPECT_EQ(all(f).find("label"), std::string::npos) << all(f);
  field["origin"]["code"] = "x = F.one_hot(labels[0], self.classes)";
  EXPECT_TRUE(says(diagnose(field), "a label must not be negative")) << all(diagnose(field));
}

TEST(AdviceTrue, ARareClassIsNoOtherListOfClasses) {
  const json part = {{"min", 0}, {"max", 4}, {"bad", 3}, {"count", 72}, {"others_min", 0}, {"others_max", 3}};
  json labels = facts_of("multi_margin_loss.target", 4, 4);
  labels["layer"] = layer("net.4", "out_features", 4);
  labels["seen"] = {{"min", 0}, {"max", 4}, {"count", 72}, {"source", "dataset"}, {"several", true}};
  labels["seen"]["part"] = part;
  EXPECT_FALSE(says(diagnose(labels), "as the others do")) << all(diagnose(labels));
  labels["seen"]["part"]["bad"] = 20;
  EXPECT_TRUE(says(diagnose(labels), "as the others do")) << all(diagnose(labels));
}

TEST(AdviceTrue, WhereNothingSpeaksOfTokensNoneStandAround) {
  json places = facts_of("embedding.indices", 48, 48, {{"scan", {{"bad", 2}, {"total", 50}, {"max", 49}}}});
  places["layer"] = layer("decoder.embed_positions", "num_embeddings", 48);
  places["table"] = "position";
  EXPECT_TRUE(says(diagnose(places), "the tokens that begin and end a text")) << all(diagnose(places));
  places["tokenizes"] = false;
  EXPECT_FALSE(says(diagnose(places), "which the limit has to count")) << all(diagnose(places));
  places["text"] = true;  // ids are in reach
  json kept = places;
  kept["position"] = {{"rows", 48}, {"offset", 2}, {"length", 48}, {"name", "decoder.embed_positions"}};
  EXPECT_FALSE(says(diagnose(kept), "put around each sequence")) << all(diagnose(kept));
  EXPECT_TRUE(
      says(diagnose(kept), "the 2 rows for other uses are counted in its size: give the position table"))
      << all(diagnose(kept));
  EXPECT_TRUE(says(diagnose(places), "2 beyond may be what is put around each sequence"))
      << all(diagnose(places));
  EXPECT_FALSE(says(diagnose(places), "truncate")) << "what ends a sequence is not to be lost";
}

TEST(AdviceTrue, NoLibraryIsNamedThatTheProgramDoesNotUse) {
  json ids = facts_of("embedding.indices", std::numeric_limits<std::int64_t>::min(), 12);
  ids["nan_cast"] = {{"frame", {{"file", "/a/main.py"}, {"line", 7}, {"code", "x.long()"}}}, {"bad", 1}};
  EXPECT_TRUE(says(diagnose(ids), "pd.cut()")) << all(diagnose(ids));
  ids["pandas"] = false;
  EXPECT_FALSE(says(diagnose(ids), "pd.") || says(diagnose(ids), "pandas")) << all(diagnose(ids));
  EXPECT_TRUE(says(diagnose(ids), "before the cast")) << all(diagnose(ids));
}

TEST(AdviceTrue, LabelsThatTheProgramMakesAreNoFiles) {
  json labels = facts_of("one_hot.self", 5, 5, {{"scan", {{"min", 1}, {"total", 6}}}});
  labels["variable"] = {{"name", "label"}, {"index", {3}}};
  labels["sample"] = {{"dataset_index", 3}};
  EXPECT_TRUE(says(diagnose(labels), "if 5 is not a class, correct the labels")) << all(diagnose(labels));
  labels["sample"] = {{"batch", 13}, {"by", "hand"}, {"one_of", {1, 2}}, {"of", 2}};
  EXPECT_TRUE(says(diagnose(labels), "look at where `label` is computed")) << all(diagnose(labels));
  EXPECT_FALSE(says(diagnose(labels), "counted from 1")) << all(diagnose(labels));
}

// -1 ends a row of labels: what fills it up was counted with them.
TEST(AdviceTrue, LabelsOfARowThatIsFilledUpAreNotCounted) {
  const json facts = facts_of(
      "multilabel_margin_loss_forward.target", 10, 10,
      {{"layer", layer("head", "out_features", 10)}, {"scan", {{"total", 1000}, {"min", -1}, {"max", 10}}}});
  EXPECT_TRUE(says(diagnose(facts), "10 is the highest of the labels seen")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "1000 labels")) << all(diagnose(facts));
  const json one = facts_of("multilabel_margin_loss_forward.target", 14, 10,
                            {{"scan", {{"total", 54}, {"min", 0}, {"max", 14}}}});
  EXPECT_TRUE(says(diagnose(one), "assert -1 <= labels.min() and labels.max() < 10")) << all(diagnose(one));
}

TEST(AdviceTrue, TheOnePlaceThatWritesANumberBeyondTheRange) {
  json facts = facts_of("nll_loss_forward.target", 99, 5,
                        {{"layer", layer("kind", "out_features", 5)}, {"scan", {{"total", 40}}}});
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
  facts["written"] = {{"text", "OTHER = 99"}, {"file", "/a/d.py"}, {"line", 14}, {"of", "name"}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.summary.ends_with("; `OTHER = 99` (d.py:14) writes it")) << found.summary;
  EXPECT_EQ(found.fix,
            std::vector<std::string>{
                "look at `OTHER = 99` (d.py:14), which writes 99: what that "
                "stands for is left out before, or it gets the next number, 5, and an output of its own"});
  json ids = facts_of("embedding.indices", 999, 40, {{"written", facts["written"]}});
  EXPECT_TRUE(says(diagnose(ids), "the next number, 40, and a row of its own")) << all(diagnose(ids));
  ids["written"]["of"] = "nothing";
  EXPECT_TRUE(says(diagnose(ids), "and at what it was asked for")) << all(diagnose(ids));
}

TEST(AdviceTrue, CodesWithGapsGetNoTable) {
  json facts = facts_of("embedding.indices", 1879048182, 31,
                        {{"scan", {{"bad", 14}, {"total", 172}, {"max", 1879048191}}},
                         {"layer", layer("kind", "num_embeddings", 31)}});
  facts["values"] = json::array({json::array({1879048182, 7}), json::array({1879048191, 7})});
  const Finding found = diagnose(facts);
  EXPECT_TRUE(says(found, "number those that occur")) << all(found);
  EXPECT_FALSE(speaks_of_size(found)) << all(found);
  facts["scan"]["max"] = 60;
  facts["scan"]["value"] = 60;
  facts["values"] = json::array({json::array({60, 7}), json::array({44, 7})});
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
}

// 2 is taken off: -1 was a 1, and no mark.
TEST(AdviceTrue, ANumberThatIsTakenOffLabelsMakesNoMark) {
  json facts =
      facts_of("nll_loss_forward.target", -1, 2, {{"scan", {{"total", 24}, {"min", -1}, {"max", 1}}}});
  facts["op"] = "cross_entropy";
  EXPECT_TRUE(says(diagnose(facts), "ignore_index=-1")) << all(diagnose(facts));
  facts["taken_off"] = {
      {"text", "labels = events[:, -1] - 2"}, {"file", "/a/d.py"}, {"line", 38}, {"number", 2}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.summary.ends_with("; `labels = events[:, -1] - 2` makes -1 of 1")) << found.summary;
  EXPECT_TRUE(says(found, "look at `labels = events[:, -1] - 2` (d.py:38): where it was 1 before"))
      << all(found);
  EXPECT_FALSE(says(found, "ignore")) << all(found);
  facts["taken_off"]["number"] = 1;  // 0 may be what is not labelled
  EXPECT_FALSE(says(diagnose(facts), "makes -1 of")) << all(diagnose(facts));
}

// Padding goes on to the end of its row.
TEST(AdviceTrue, ALookUpAmongTheIdsOfARowIsNoPadding) {
  json facts = facts_of("embedding.indices", -1, 59, {{"args", {{"padding_idx", 0}}}});
  facts["tensor"]["shape"] = {20, 16};
  facts["scan"]["total"] = 320;
  facts["scan"]["first"] = 41;  // [2, 9]
  EXPECT_FALSE(says(diagnose(facts), "padding")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "not to count")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "if a look-up gives it for what it does not find"))
      << all(diagnose(facts));
  facts["scan"]["first"] = 47;  // the last of its row
  EXPECT_TRUE(says(diagnose(facts), "if -1 marks padding")) << all(diagnose(facts));
}

TEST(AdviceTrue, LowerNumbersThanMinusOneAreNoMarks) {
  json facts =
      facts_of("index_select.index", -1, 16, {{"scan", {{"bad", 225}, {"total", 1024}, {"min", -8}}}});
  facts["values"] = json::array({json::array({-1, 30}), json::array({-8, 30})});
  EXPECT_FALSE(says(diagnose(facts), "found nothing")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "signed where they are to be unsigned")) << all(diagnose(facts));
  facts["scan"]["min"] = -1;
  facts["values"] = json::array({json::array({-1, 225})});
  EXPECT_TRUE(says(diagnose(facts), "found nothing")) << all(diagnose(facts));
}

// What was cut may be wrong itself, where one record has it.
TEST(AdviceTrue, TheEndOfACutInOneRecordIsLookedAtFirst) {
  json facts = facts_of("nll_loss_forward.target", 9, 9, {{"scan", {{"total", 16}, {"min", 1}, {"max", 9}}}});
  facts["computed"] = {{"name", "decade"}, {"text", "parse_age(scan.age) // 10"}, {"line", 41}};
  EXPECT_FALSE(says(diagnose(facts), "see first whether")) << all(diagnose(facts));
  facts["sample"] = {{"dataset_index", 93}};
  EXPECT_TRUE(says(diagnose(facts), "see first whether what is cut there is right in that sample"))
      << all(diagnose(facts));
  facts["computed"]["of_sample"] = true;
  facts["computed"]["file"] = "/a/d.py";
  EXPECT_TRUE(
      says(diagnose(facts), "whether what `parse_age(scan.age) // 10` (d.py:41) cuts is right in that"))
      << all(diagnose(facts));
}

TEST(AdviceTrue, WhatNumPySaidOfAnInput) {
  json facts = facts_of("multinomial.self", 0, 0);
  facts["scan"] = {{"bad", 3},       {"total", 3},       {"first", 0},
                   {"value", "nan"}, {"is_float", true}, {"reason", 3}};
  facts["nan"]["input"] = {{"name", "obs"}, {"index", {10}}, {"value", "nan"}, {"module", "policy"}};
  EXPECT_TRUE(says(diagnose(facts), "missing values, 0/0")) << all(diagnose(facts));
  facts["nan"]["warned"] = {{{"text", "Mean of empty slice"},
                             {"file", "/a/env.py"},
                             {"line", 44},
                             {"function", ""},
                             {"code", "m = np.mean(w)"},
                             {"user", true}}};
  EXPECT_TRUE(
      says(diagnose(facts), "NumPy warned at env.py:44 of `Mean of empty slice`, in `m = np.mean(w)`"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "missing values")) << all(diagnose(facts));
}

TEST(AdviceTrue, AnIndexThatASearchMadeOfNaNMarksNothing) {
  json facts = facts_of("gather.index", -1, 7, {{"scan", {{"total", 200}, {"min", -1}, {"max", 5}}}});
  EXPECT_TRUE(says(diagnose(facts), "padding")) << all(diagnose(facts));
  facts["sample"] = {{"dataset_index", 417}, {"by", "nan"}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.summary.ends_with("; that sample has NaN or Inf")) << found.summary;
  EXPECT_TRUE(says(found, "mend it, or leave it out, before the index is computed of it")) << all(found);
  EXPECT_FALSE(says(found, "padding")) << all(found);
}

TEST(AdviceTrue, TheEndThatIsDrawnIsToldBySomeGenerators) {
  json facts = facts_of("embedding.indices", 46, 46, {{"scan", {{"total", 128}}}});
  facts["sample"] = {{"dataset_index", 129}, {"batch", 0}, {"row", 2}, {"by", "drawn"}};
  EXPECT_TRUE(says(diagnose(facts), "random.randint(a, b) can give b itself")) << all(diagnose(facts));
}

TEST(AdviceTrue, TheOneLookUpOfTheProgram) {
  json facts =
      facts_of("nll_loss_forward.target", -1, 5, {{"scan", {{"total", 256}, {"min", -1}, {"max", 4}}}});
  facts["op"] = "cross_entropy";
  facts["written"] = {{"text", "SYMBOLS.find(c)"}, {"file", "/a/d.py"}, {"line", 19}, {"of", "nothing"}};
  const Finding found = diagnose(facts);
  EXPECT_TRUE(found.summary.ends_with("; `SYMBOLS.find(c)` gives -1 for what it does not find"))
      << found.summary;
  EXPECT_TRUE(says(found, "look at `SYMBOLS.find(c)` (d.py:19), and at what it was asked for")) << all(found);
  EXPECT_FALSE(says(found, "ignore")) << all(found);
  json ids = facts_of("embedding.indices", -1, 59, {{"args", {{"padding_idx", 0}}}});
  ids["tensor"]["shape"] = {20, 16};
  ids["scan"]["total"] = 320;
  ids["scan"]["first"] = 41;
  ids["written"] = facts["written"];
  EXPECT_TRUE(says(diagnose(ids), "look at `SYMBOLS.find(c)`")) << all(diagnose(ids));
  ids["scan"]["first"] = 47;  // the last of its row: padding, perhaps
  EXPECT_TRUE(says(diagnose(ids), "if -1 marks padding")) << all(diagnose(ids));
  ids = facts_of("_embedding_bag.indices", -1, 18, {{"scan", {{"total", 120}, {"bad", 5}}}});
  ids["tensor"]["shape"] = {40, 3};
  ids["scan"]["first"] = 4;
  ids["written"] = facts["written"];
  EXPECT_TRUE(
      says(diagnose(ids), "see first what is done with it from there (a list has a last element for -1)"))
      << all(diagnose(ids));
  EXPECT_FALSE(says(diagnose(ids), "number the others from 1")) << all(diagnose(ids));
}

// What the program itself writes tells what -1 is, and where to look.
TEST(AdviceTrue, TheOnePlaceThatWritesTheMark) {
  json facts =
      facts_of("nll_loss_forward.target", -1, 5, {{"scan", {{"total", 256}, {"min", -1}, {"max", 4}}}});
  facts["op"] = "cross_entropy";
  facts["written"] = {{"text", "IGNORE = -1"}, {"file", "/a/d.py"}, {"line", 15}, {"of", "name"}};
  EXPECT_EQ(diagnose(facts).fix.front(),
            "if `IGNORE = -1` (d.py:15) marks what is not to count: F.cross_entropy(..., ignore_index=-1) or "
            "nn.CrossEntropyLoss(ignore_index=-1)");
  EXPECT_FALSE(says(diagnose(facts), "look-up")) << all(diagnose(facts));
  facts["written"] = {{"text", "lut = np.full(256, -1)"}, {"file", "/a/d.py"}, {"line", 19}, {"of", "fill"}};
  const std::string look =
      "look at `lut = np.full(256, -1)` (d.py:19), which writes -1: where "
      "something else should stand (a code that a table lacks, no match), mend that first: to leave it out "
      "would hide it";
  EXPECT_EQ(diagnose(facts).fix.front(), look);
  EXPECT_TRUE(says(diagnose(facts), "if -1 stands there for padding, or for what has no label: F.cross"))
      << all(diagnose(facts));
  json index = facts_of("gather.index", -1, 9, {{"scan", {{"total", 64}, {"max", 8}}}});
  index["written"] = facts["written"];
  EXPECT_EQ(diagnose(index).fix.front(), look) << all(diagnose(index));
}

// A move of a game: from square times squares, plus to square. One more output would be no move.
TEST(AdviceTrue, ASizeThatIsAProductIsNotEnlarged) {
  json facts = facts_of("nll_loss_forward.target", 7165, 7128,
                        {{"scan", {{"bad", 2}, {"total", 32}, {"min", 1303}, {"max", 7165}}}});
  facts["op"] = "cross_entropy";
  facts["layer"] = {{"name", "out"}, {"type", "Linear"}, {"attribute", "out_features"}, {"value", 7128}};
  facts["seen"] = {{"min", 0}, {"max", 7201}, {"count", 99420}, {"source", "dataset"}, {"kinds", 7150}};
  EXPECT_TRUE(says(diagnose(facts), "out_features=7202")) << all(diagnose(facts));
  facts["made"] = json::array(
      {{{"text", "N_LABELS=(N_SQUARES + N_HAND) * N_SQUARES"}, {"file", "/a/d.py"}, {"line", 13}}});
  const Finding found = diagnose(facts);
  EXPECT_EQ(found.cause, Cause::kLabelOutOfRange);
  EXPECT_FALSE(says(found, "7202")) << all(found);
  EXPECT_TRUE(says(found, "the size is put together, `N_LABELS=(N_SQUARES + N_HAND) * N_SQUARES` (d.py:13)"))
      << all(found);
  json ids = facts_of("embedding.indices", 130, 128, {{"scan", {{"bad", 47}, {"total", 800}, {"max", 132}}}});
  ids["layer"] = {{"name", "table"}, {"type", "Embedding"}, {"attribute", "num_embeddings"}, {"value", 128}};
  ids["made"] = json::array({{{"text", "TREES * LEAVES"}, {"file", "/a/d.py"}, {"line", 13}}});
  EXPECT_TRUE(says(diagnose(ids), "the size is put together, `TREES * LEAVES`")) << all(diagnose(ids));
  EXPECT_FALSE(says(diagnose(ids), "more than 128 ids")) << all(diagnose(ids));
}

// Brightness of a palette's colours is not what interpolation makes.
TEST(AdviceTrue, AMaskThatWasTurnedGrey) {
  json facts =
      facts_of("nll_loss_forward.target", 220, 21,
               {{"scan", {{"bad", 4729}, {"total", 13824}, {"min", 0}, {"max", 220}, {"also", 255}}}});
  facts["op"] = "cross_entropy";
  facts["tensor"]["shape"] = {6, 48, 48};
  EXPECT_TRUE(says(diagnose(facts), "resize masks without interpolation")) << all(diagnose(facts));
  facts["resizes"] = false;
  EXPECT_FALSE(says(diagnose(facts), "resize masks without interpolation")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "look at how the masks are read and changed")) << all(diagnose(facts));
  facts["greys"] = true;
  EXPECT_TRUE(says(diagnose(facts), "np.array(Image.open(path)) keeps those of a palette"))
      << all(diagnose(facts));
}

TEST(AdviceTrue, MarksThatWereStoredInUint8) {
  json facts =
      facts_of("nll_loss_forward.target", 156, 3,
               {{"scan", {{"bad", 564}, {"total", 8192}, {"min", 0}, {"max", 156}, {"also", -100}}}});
  facts["op"] = "cross_entropy";
  EXPECT_TRUE(diagnose(facts).summary.ends_with("; 156 is what -100 becomes in uint8"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "more than 3 classes")) << all(diagnose(facts));
  facts["scan"]["also"] = 255;  // no -100 is to be left out
  EXPECT_FALSE(says(diagnose(facts), "uint8")) << all(diagnose(facts));
}

TEST(AdviceTrue, LabelsThatBeginFarBelowZero) {
  json facts = facts_of("nll_loss_forward.target", -2, 15,
                        {{"scan", {{"bad", 25}, {"total", 50}, {"min", -7}, {"max", 7}}}});
  facts["op"] = "nll_loss";
  EXPECT_TRUE(diagnose(facts).summary.ends_with("; labels run from -7 to 7, as many as there are classes"))
      << all(diagnose(facts));
  const char* less = "a number that is taken off there (a first class, an offset) may be 7 too high";
  EXPECT_TRUE(says(diagnose(facts), less)) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "add 7")) << all(diagnose(facts));  // of one layer it may be right alone
  facts["scan"]["min"] = -6;
  EXPECT_FALSE(says(diagnose(facts), "too high")) << all(diagnose(facts));
}

TEST(AdviceTrue, LabelsOnBothSidesAreNoClasses) {
  json facts = facts_of("nll_loss_forward.target", 256, 256,
                        {{"scan", {{"bad", 13}, {"total", 9600}, {"min", -1}, {"max", 257}}}});
  facts["op"] = "cross_entropy";
  facts["tensor"]["shape"] = {12, 800};
  facts["values"] = json::array({json::array({256, 6}), json::array({-1, 4}), json::array({257, 3})});
  EXPECT_TRUE(says(diagnose(facts), "come of arithmetic (data beyond the range that is cut into classes"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "more than 256 classes")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "mask")) << all(diagnose(facts));
}

// Codes that a table lacks, all over a map: looked at before -1 is taken for a mark.
TEST(AdviceTrue, MinusOneOfAMapIsLookedAtFirst) {
  json facts = facts_of("nll_loss_forward.target", -1, 6,
                        {{"scan", {{"bad", 919}, {"total", 4096}, {"min", -1}, {"max", 5}}}});
  facts["op"] = "cross_entropy";
  facts["tensor"]["shape"] = {4, 32, 32};
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with(
      "look at where the label is made, before -1 is taken for a mark"))
      << all(diagnose(facts));
  facts["sample"] = {{"dataset_index", 1}, {"by", "padding"}};
  EXPECT_FALSE(says(diagnose(facts), "before -1 is taken for a mark")) << all(diagnose(facts));
}

}  // namespace
}  // namespace trapline::diagnose
