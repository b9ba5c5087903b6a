// What numbers were computed of, and what the setting around them may be: said before anything is enlarged,
// left out or marked.
#include "advice.hpp"

namespace trapline::diagnose {
namespace {

// A -1 that the program's own subtraction made is no mark.
TEST(AdviceGiven, MinusOneThatIsANumberLessOne) {
  json facts =
      facts_of("nll_loss_forward.target", -1, 10, {{"scan", {{"total", 8}, {"max", 9}}}, {"as_nll", true}});
  EXPECT_TRUE(says(diagnose(facts), "nn.NLLLoss(ignore_index=-1)")) << all(diagnose(facts));
  facts["computed"] = {{"name", "stars"}, {"text", "rating - 1"}, {"line", 20}, {"file", "data.py"}};
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("; `rating - 1` makes -1 of 0")) << finding.summary;
  EXPECT_EQ(
      finding.fix.front(),
      "look at `stars = rating - 1` (data.py:20): if what is 0 there is no class (not known), correct "
      "such records, or leave them out; if it is one, take nothing off, and let the model have an output for "
      "it");
  facts["computed"]["text"] = "rating - 10";
  EXPECT_FALSE(says(diagnose(facts), "what is 0 there")) << all(diagnose(facts));
}

// What arithmetic was given stands beside it; columns with offsets only where there are some.
TEST(AdviceGiven, WhatArithmeticWasGiven) {
  json facts = facts_of("embedding.indices", 51, 40, {{"scan", {{"total", 88}}}, {"index", {0, 4}}});
  facts["tensor"]["shape"] = {4, 22};
  facts["sample"] = {{"dataset_index", 30}, {"batch", 11}, {"row", 0}, {"by", "function"}};
  facts["computed"] = {{"text", "skill + 20 * correct"},
                       {"line", 44},
                       {"parts", json::array({{{"name", "skill"}, {"index", {0, 4}}, {"value", 11}},
                                              {{"name", "correct"}, {"index", {0, 4}}, {"value", 2}}})}};
  EXPECT_TRUE(says(diagnose(facts),
                   "look at `skill + 20 * correct` (line 44; there `skill[0, 4]` is 11, "
                   "`correct[0, 4]` is 2): 1 of 88 is outside [0, 40)"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "where columns share a table")) << all(diagnose(facts));
  facts["computed"]["parts"][1]["index"] = {4};
  EXPECT_TRUE(says(diagnose(facts), "where columns share a table")) << all(diagnose(facts));
}

// A field of a model's input is no class.
TEST(AdviceGiven, OneHotOfWhatIsNoLabel) {
  json facts =
      facts_of("one_hot.self", 3, 3, {{"scan", {{"total", 128}}}, {"sample", {{"dataset_index", 5}}}});
  EXPECT_TRUE(says(diagnose(facts), "if 3 is not a value that may occur, correct it"))
      << all(diagnose(facts));
  facts["variable"] = {{"name", "labels"}, {"index", {0}}};
  EXPECT_TRUE(says(diagnose(facts), "if 3 is not a class, correct it")) << all(diagnose(facts));
}

// The one other table of the module has room for ids of which half have none here: the sizes may be swapped.
TEST(AdviceGiven, TwoTablesThatMayBeMixedUp) {
  json ids = facts_of("embedding.indices", 32, 16, {{"scan", {{"bad", 5}, {"total", 8}, {"max", 40}}}});
  ids["layer"] = layer("ent_emb", "num_embeddings", 16);
  ids["layer"]["partner"] = {{"name", "rel_emb"}, {"rows", 42}};
  EXPECT_TRUE(says(diagnose(ids), "`rel_emb` has 42 rows, room for all of these ids")) << all(diagnose(ids));
  ids["scan"]["bad"] = 1;  // a record
  EXPECT_FALSE(says(diagnose(ids), "rel_emb")) << all(diagnose(ids));
  ids["scan"]["bad"] = 5;
  ids["layer"]["partner"]["rows"] = 40;
  EXPECT_FALSE(says(diagnose(ids), "rel_emb")) << all(diagnose(ids));
}

// A part of the data may be numbered -1 and 1: nothing is to be left out of it.
TEST(AdviceGiven, MinusOneBesideZeroAndOne) {
  const json facts = facts_of(
      "binary_cross_entropy.target", 0, 0,
      {{"values", json::array({json::array({-1.0, 1})})},
       {"kinds", {{"whole", true}, {"zero", true}, {"one", true}}},
       {"scan",
        {{"bad", 1}, {"value", -1.0}, {"min", -1.0}, {"max", 1.0}, {"reason", 2}, {"is_float", true}}}});
  EXPECT_EQ(diagnose(facts).fix.front().substr(0, 60),
            "see what -1 stands for: class 0, where a part of the data is")
      << all(diagnose(facts));
}

// Neither a shorter text nor more rows put a position right that was counted wrongly.
TEST(AdviceGiven, APositionThatItsCacheContradicts) {
  const Finding finding = diagnose(facts_of("embedding.indices", 64, 64,
                                            {{"table", "position"},
                                             {"scan", {{"bad", 1}, {"total", 1}}},
                                             {"variable", {{"name", "pos"}, {"index", {0}}}},
                                             {"kept", {{"name", "past"}, {"tokens", 42}}}}));
  EXPECT_NE(finding.summary.find("counted wrongly, as `past` holds 42 tokens"), std::string::npos)
      << all(finding);
  EXPECT_TRUE(
      says(finding, "look at where `pos` is computed: 64 is its number only if 64 tokens are before it"));
  EXPECT_FALSE(says(finding, "fewer tokens")) << all(finding);
  EXPECT_FALSE(says(finding, "at least")) << all(finding);
}

// A 41st row would hide the NaN that a search has put behind the last edge.
TEST(AdviceGiven, NoMoreRowsForNaNThatWasSearched) {
  json facts = facts_of("embedding.indices", 40, 40, {{"table", "other"}});
  facts["computed"] = {
      {"name", "band"}, {"text", "torch.bucketize(x, edges)"}, {"line", 7}, {"by", "bucketize"}};
  facts["sample"] = {{"dataset_index", 43}, {"batch", 1}, {"row", 0}, {"likely", true}, {"by", "rows"}};
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(says(finding, "that sample has NaN or Inf")) << all(finding);
  EXPECT_FALSE(says(finding, "buckets")) << all(finding);
}

TEST(AdviceGiven, ARecordThatIsInfiniteItself) {
  json facts = facts_of("embedding.indices", std::numeric_limits<std::int64_t>::min(), 432);
  facts["nan_cast"] = {
      {"bad", 1}, {"value", "inf"}, {"frame", {{"file", "a.py"}, {"line", 5}, {"code", "x.long()"}}}};
  facts["sample"] = {{"dataset_index", 77}, {"batch", 7}, {"row", 3}, {"likely", true}, {"by", "rows"}};
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(says(finding, "that sample has NaN or Inf already")) << all(finding);
  EXPECT_FALSE(says(finding, "log")) << all(finding);
}

// The trainer's own name of the limit, and no more positions than it asks for.
TEST(AdviceGiven, WhatLimitsTheTextOfATrainer) {
  json facts =
      facts_of("embedding.indices", 48, 48, {{"scan", {{"bad", 1}, {"total", 1}}}, {"table", "position"}});
  facts["layer"] = layer("decoder.embed_positions", "num_embeddings", 48);
  facts["generation"] = {{"prompt", 1}, {"length", 64}, {"trainer", true}};
  EXPECT_TRUE(says(diagnose(facts),
                   "generation_max_length=48 instead of 64: it counts the token that the decoder "
                   "starts with as well"))
      << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "63 at least")) << all(diagnose(facts));
  facts["generation"] = {{"prompt", 10}, {"length", 64}};
  EXPECT_TRUE(says(diagnose(facts), "max_length=48 instead of 64: it counts the prompt as well"))
      << all(diagnose(facts));
}

// A place that arithmetic computed is wrong, or the size that it goes by: a larger tensor hides it.
TEST(AdviceGiven, NothingIsEnlargedForAComputedPlace) {
  json facts = facts_of("index_add.index", 12390, 12390, {{"scan", {{"total", 6144}, {"max", 13129}}}});
  EXPECT_TRUE(says(diagnose(facts), "make the tensor that is written to larger")) << all(diagnose(facts));
  facts["computed"] = {{"name", "place"}, {"text", "top * width + left"}, {"line", 26}};
  EXPECT_FALSE(says(diagnose(facts), "larger")) << all(diagnose(facts));
}

// -1 was a 0 before the program took 1 off.
TEST(AdviceGiven, AnIdLessOne) {
  json facts = facts_of("embedding.indices", -1, 8, {{"scan", {{"total", 6}, {"max", 5}}}});
  facts["computed"] = {{"name", "tag"}, {"text", "tag - 1"}, {"line", 28}, {"file", "photos.py"}};
  EXPECT_TRUE(says(diagnose(facts), "what is 0 there, before 1 is taken off, has no number"))
      << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "marks what is not to count")) << all(diagnose(facts));
}

// A library's own loss made the index of the labels that it was given: the user cannot leave them out there.
TEST(AdviceGiven, AnIndexThatALibraryMade) {
  json facts = facts_of("scatter.index", -1, 6, {{"scan", {{"total", 48}, {"max", 5}}}});
  EXPECT_TRUE(says(
      diagnose(facts),
      "if -1 in the index marks what is not to count, all that goes with such elements has to be left out"))
      << all(diagnose(facts));
  facts["library"] = {{"caller", "somelib"}};
  EXPECT_EQ(
      diagnose(facts).fix.front(),
      "a library made the index of what it was given (labels, ids): look at where that is made: 1 of 48 is "
      "outside [0, 6); if -1 marks what is not to count, such an entry has to be left out before somelib is "
      "called");
}

// Weights that the program computes come from no layer, also where it is a model that is used.
TEST(AdviceGiven, WeightsOfTheProgramsOwn) {
  json facts = facts_of("multinomial.self", 0, 1, {{"weights", {{"bad", 0}, {"total", 6}}}});
  facts["scan"] = {{"bad", 222},     {"total", 256}, {"first", 0},
                   {"value", "nan"}, {"reason", 3},  {"is_float", true}};
  facts["nan"] = {{"situation", "inference"}, {"command", "python main.py"}};
  EXPECT_TRUE(says(diagnose(facts), "--watch nan")) << all(diagnose(facts));
  facts["scores"] = false;
  EXPECT_FALSE(says(diagnose(facts), "--watch nan")) << all(diagnose(facts));
  EXPECT_TRUE(says(diagnose(facts), "0/0 (a row that is divided by its own sum of 0)"))
      << all(diagnose(facts));
}

// What stands between the loader and the call put the number there: no sample has it, and no table is short.
TEST(AdviceGiven, ANumberThatWasPutInPlaceOfTheSamples) {
  json ids = facts_of("embedding.indices", 47, 45, {{"scan", {{"total", 96}}}});
  ids["layer"] = layer("token_emb", "num_embeddings", 45);
  ids["sample"] = {{"dataset_index", 116}, {"batch", 2}, {"row", 2}, {"by", "replaced"}};
  EXPECT_EQ(diagnose(ids).fix.size(), 1) << all(diagnose(ids));
  EXPECT_TRUE(says(diagnose(ids), "the batch has another number at that place: look at what puts 47 there"))
      << all(diagnose(ids));
}

// A 0 that is missing among few of many numbers tells nothing.
TEST(AdviceGiven, FewOfManyNumbersAreNotCountedFromOne) {
  json ids = facts_of("embedding.indices", 256, 256, {{"scan", {{"total", 8}, {"min", 1}}}});
  ids["seen"] = {{"min", 1}, {"max", 256}, {"count", 600}, {"source", "dataset"}, {"kinds", 250}};
  EXPECT_TRUE(says(diagnose(ids), "counted from 1")) << all(diagnose(ids));
  ids["seen"]["kinds"] = 200;  // the 0 may be among those that it lacks, too
  EXPECT_FALSE(says(diagnose(ids), "counted from 1")) << all(diagnose(ids));
}

TEST(AdviceGiven, NaNBesideZerosIsInfByInf) {
  json facts =
      facts_of("multinomial.self", 0, 1, {{"weights", {{"bad", 0}, {"total", 6}}}, {"scores", false}});
  facts["tensor"]["shape"] = {12};
  facts["scan"] = {{"bad", 1},    {"total", 12},      {"first", 0}, {"value", "nan"},
                   {"reason", 3}, {"is_float", true}, {"min", 0.0}, {"max", 0.0}};
  EXPECT_TRUE(says(diagnose(facts), "an infinite weight divided by a sum that it made infinite"))
      << all(diagnose(facts));
  facts["scan"]["max"] = 0.5;
  EXPECT_FALSE(says(diagnose(facts), "an infinite weight")) << all(diagnose(facts));
}

json all_of(std::int64_t value, std::int64_t hi, std::int64_t beyond, std::int64_t kinds) {
  return {{"seen",
           {{"min", 0},
            {"max", value},
            {"count", 200},
            {"source", "dataset"},
            {"beyond", beyond},
            {"kinds", kinds}}},
          {"layer", layer("kiln", "num_embeddings", hi)},
          {"scan", {{"total", 8}}},
          {"sample", {{"dataset_index", 74}, {"batch", 9}, {"row", 7}, {"loader", "loader"}}}};
}

// One number above all others of the whole data set, with places between that none has, asks for no size.
TEST(AdviceGiven, ANumberThatIsAloneIsWrongItself) {
  for (const char* contract : {"embedding.indices", "nll_loss_forward.target", "index_select.index"}) {
    const Finding finding = diagnose(facts_of(contract, 99, 40, all_of(99, 40, 1, 41)));
    EXPECT_EQ(finding.fix.front(), "look at sample 74: print(loader.dataset[74])") << contract;
    EXPECT_TRUE(says(finding, "99 is the only one of the 200 ")) << all(finding);
    EXPECT_FALSE(speaks_of_size(finding)) << all(finding);
    EXPECT_FALSE(says(finding, "100")) << all(finding);
    // The next number may be a class, or a row, that was left out.
    const Finding next = diagnose(facts_of(contract, 40, 40, all_of(40, 40, 1, 41)));
    EXPECT_TRUE(says(next, "meant to be more than 40") || says(next, "41")) << all(next);
    const Finding two = diagnose(facts_of(contract, 45, 40, all_of(45, 40, 2, 42)));
    EXPECT_FALSE(says(two, "the only one")) << all(two);
  }
}

// Many numbers above the size, without a gap: the size is asked for before a record is.
TEST(AdviceGiven, ManyNumbersAskForTheSize) {
  const Finding many = diagnose(facts_of("embedding.indices", 4, 4, all_of(4, 4, 30, 5)));
  EXPECT_EQ(many.fix.front(),
            "30 of the 200 ids of the whole data set are above 3, up to 4: no single record makes them");
  EXPECT_TRUE(many.fix.at(1).starts_with(
      "if there are meant to be more than 4 ids, and these are not of an older or another numbering: "))
      << all(many);
  EXPECT_EQ(many.fix.at(2), "look at sample 74: print(loader.dataset[74])");
  // As many different ones as there are rows, from 1 on: months.
  json months = facts_of("embedding.indices", 12, 12, {{"scan", {{"bad", 9}, {"total", 128}, {"min", 1}}}});
  months["seen"] = {{"min", 1},      {"max", 12},       {"count", 6420},      {"kinds", 12},
                    {"beyond", 372}, {"several", true}, {"source", "dataset"}};
  months["sample"] = {{"dataset_index", 74}, {"loader", "loader"}};
  EXPECT_TRUE(diagnose(months).fix.front().starts_with("if they are counted from 1"))
      << all(diagnose(months));
  EXPECT_FALSE(speaks_of_size(diagnose(months))) << all(diagnose(months));
  const Finding few = diagnose(facts_of("embedding.indices", 4, 4, all_of(4, 4, 2, 5)));
  EXPECT_EQ(few.fix.front(), "look at sample 74: print(loader.dataset[74])");
  const Finding gaps = diagnose(facts_of("embedding.indices", 60, 40, all_of(60, 40, 30, 20)));
  EXPECT_FALSE(says(gaps, "see whether the size is right") || says(gaps, "of the two is meant")) << all(gaps);
}

json in_sample(const char* by) {
  json sample = {{"dataset_index", 129}, {"batch", 0}, {"row", 2}, {"loader", "loader"}};
  if (*by != '\0') sample["by"] = by;
  return {{"sample", sample}, {"layer", layer("emb", "num_embeddings", 46)}, {"scan", {{"total", 128}}}};
}

// What came in between the records and the call: neither a record nor a size is wrong.
TEST(AdviceGiven, NumbersThatNoRecordHas) {
  for (const char* contract : {"embedding.indices", "nll_loss_forward.target", "gather.index"}) {
    for (const auto& [by, words] :
         {std::pair("collate", "the sample itself has no 52: look at what the collate"),
          std::pair("drawn", "the data set makes another number each time: look at what is drawn there"),
          std::pair("replaced", "the batch has another number at that place")}) {
      const Finding finding = diagnose(facts_of(contract, 52, 46, in_sample(by)));
      EXPECT_TRUE(says(finding, words)) << contract << by << all(finding);
      EXPECT_FALSE(speaks_of_size(finding)) << contract << by << all(finding);
      EXPECT_FALSE(says(finding, "look at sample")) << contract << by << all(finding);
    }
  }
  json counted = in_sample("collate");  // whatever puts them there may
  counted["counted"] = {{"count", 60}, {"of", "len(vocab)"}};
  counted["table"] = "token";
  const Finding finding = diagnose(facts_of("embedding.indices", 52, 46, counted));
  EXPECT_TRUE(says(finding, "len(vocab) is 60")) << all(finding);
  EXPECT_FALSE(says(finding, "look at sample")) << all(finding);
}

TEST(AdviceGiven, PaddingByAMask) {
  json facts = in_sample("padding");
  facts["masked"] = "batch[\"attention_mask\"]";
  facts["variable"] = {{"name", "batch[\"token_type_ids\"]"}, {"index", {3}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 46, 46, facts));
  EXPECT_EQ(finding.fix,
            std::vector<std::string>{
                "1 of 128 is outside [0, 46), all where `batch[\"attention_mask\"]` is 0: that is "
                "padding: put a valid number there (0) where `batch[\"token_type_ids\"]` is made; no "
                "larger size is wanted"});
}

TEST(AdviceGiven, WholeNumbersInAShortFloat) {
  json facts = in_sample("rounded");
  facts["variable"] = {{"name", "features"}, {"index", {3, 0}}, {"rounded", "bfloat16"}, {"exact", 256}};
  const Finding finding = diagnose(facts_of("embedding.indices", 260, 260, facts));
  EXPECT_TRUE(finding.summary.ends_with("; `features` is bfloat16, which rounds whole numbers above 256"));
  EXPECT_EQ(finding.fix.size(), 1) << all(finding);
  EXPECT_TRUE(says(finding, "keep ids as integers (torch.long)")) << all(finding);
}

TEST(AdviceGiven, TwoNumbersReadAsOne) {
  json facts = {{"values", {{262149, 3}, {589831, 2}, {1769477, 1}, {65544, 1}}},
                {"scan", {{"bad", 187}, {"total", 192}, {"min", 8}, {"max", 1769477}}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 262149, 28, facts));
  EXPECT_TRUE(finding.summary.ends_with("; each is two 16-bit numbers read as one: 262149 is 5 + 65536 * 4"))
      << finding.summary;
  EXPECT_TRUE(says(finding, "read them with the dtype that they were written with")) << all(finding);
  EXPECT_FALSE(speaks_of_size(finding)) << all(finding);
  // A tokenizer that was counted changes nothing of that: it has made the file.
  facts["counted"] = {{"count", 28}, {"of", "enc.n_vocab"}};
  const Finding counted = diagnose(facts_of("embedding.indices", 262149, 28, facts));
  EXPECT_TRUE(says(counted, "read them with the dtype")) << all(counted);
  EXPECT_FALSE(says(counted, "tokenizer")) << all(counted);
  facts.erase("counted");
  // Other numbers, of which hardly one is valid: no size either, and no word of a dtype.
  facts["values"] = {{262149, 3}, {589831, 2}, {1769477, 1}, {100000, 1}};
  const Finding other = diagnose(facts_of("embedding.indices", 262149, 28, facts));
  EXPECT_FALSE(says(other, "dtype")) << all(other);
  EXPECT_FALSE(speaks_of_size(other)) << all(other);
}

// Four special ids on top of a table of 320 are "64 + 256 * 1" as well, and a larger vocabulary's ids are
// too.
TEST(AdviceGiven, IdsAboveTheTableAreNoPairs) {
  for (const json& values :
       {json{{320, 9}, {321, 5}, {322, 4}, {323, 1}}, json{{330, 1}, {590, 1}, {900, 1}, {1200, 2}}}) {
    const json facts = {{"values", values},
                        {"scan", {{"bad", 19}, {"total", 192}, {"min", 8}, {"max", 1200}}}};
    const Finding finding = diagnose(facts_of("embedding.indices", 321, 320, facts));
    EXPECT_EQ(finding.summary.find("read as one"), std::string::npos) << finding.summary;
  }
}

TEST(AdviceGiven, AnIdOfAnotherVocabularyIsSet) {
  json facts = {{"special_ids", {{"text_config.bos_token_id", 30522}}},
                {"resizable", "model"},
                {"table", "token"},
                {"values", {{30522, 4}}},
                {"library", {{"owner", "transformers"}}},
                {"scan", {{"bad", 4}, {"min", 30522}, {"max", 30522}}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 30522, 22, facts));
  EXPECT_EQ(finding.fix.front(),
            "set model.config.text_config.bos_token_id to an id below 22: the tokenizer that the model was "
            "trained with has its bos_token_id")
      << all(finding);
  EXPECT_FALSE(says(finding, "resize_token_embeddings")) << all(finding);
}

json signed_labels(json more) {
  json facts = {{"values", {{-1, 3}}}, {"scan", {{"bad", 3}, {"total", 8}, {"min", -1}, {"max", 1}}}};
  facts.merge_patch(more);
  return facts_of("nll_loss_forward.target", -1, 2, facts);
}

// svmlight calls its two classes -1 and 1: to ignore the one would leave it out.
TEST(AdviceGiven, TwoClassesThatAreCalledMinusOneAndOne) {
  const json part = {{"min", -1},       {"max", 1},        {"bad", 20},     {"count", 50},
                     {"others_min", 0}, {"others_max", 1}, {"zero", false}, {"position", 2}};
  json seen = {{"min", -1}, {"max", 1}, {"count", 150}, {"source", "dataset"}, {"kinds", 3}, {"part", part}};
  const Finding one = diagnose(signed_labels({{"seen", seen}}));
  EXPECT_TRUE(one.summary.ends_with(
      "; `datasets[2]` of the ConcatDataset calls the two classes -1 and 1, the others 0 and 1"))
      << one.summary;
  EXPECT_EQ(one.fix.size(), 1) << all(one);
  EXPECT_TRUE(says(one, "labels[labels == -1] = 0")) << all(one);
  seen["part"]["zero"] = true;  // what is not labelled, perhaps
  EXPECT_TRUE(says(diagnose(signed_labels({{"seen", seen}})), "ignore_index=-1"));
  seen.erase("part");
  seen["kinds"] = 2;
  const Finding whole = diagnose(signed_labels({{"seen", seen}}));
  EXPECT_TRUE(whole.summary.ends_with("; the two classes are called -1 and 1")) << whole.summary;
  EXPECT_FALSE(says(whole, "ignore_index")) << all(whole);
  const Finding open =
      diagnose(signed_labels({{"kinds", {{"whole", true}, {"zero", false}, {"one", true}}}}));
  EXPECT_TRUE(open.fix.front().starts_with(
      "none of these labels is 0: if -1 and 1 are the two classes, in all of the"))
      << all(open);
}

// 0 is left out and is a class: what marks the rest is not to become one.
TEST(AdviceGiven, AnIgnoreIndexThatIsAClass) {
  json facts = {{"values", {{255, 30}}},
                {"scan", {{"bad", 30}, {"total", 16384}, {"max", 255}, {"also", 0}}},
                {"library",
                 {{"caller", "transformers"},
                  {"owner", "transformers"},
                  {"settings", {{"semantic_loss_ignore_index", {0}}, {"num_labels", {5}}}}}}};
  const Finding finding = diagnose(facts_of("nll_loss2d_forward.target", 255, 5, facts));
  EXPECT_TRUE(says(finding, "set semantic_loss_ignore_index to 255: 0 is a class, which is left out now"))
      << all(finding);
  EXPECT_FALSE(says(finding, "labels[labels == 255] = 0")) << all(finding);
}

TEST(AdviceGiven, IdsOfAnotherTokenizer) {
  json facts = {{"table", "token"},
                {"tokenizes", true},
                {"resizable", "model"},
                {"counted", {{"count", 47}, {"of", "len(tokenizer)"}}},
                {"layer", layer("words", "num_embeddings", 29)},
                {"scan", {{"bad", 4}, {"total", 8}, {"max", 38}}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 38, 29, facts));
  EXPECT_TRUE(finding.fix.front().starts_with("load tokenizer and model from the same checkpoint"))
      << all(finding);
  EXPECT_TRUE(finding.fix.at(1).starts_with("only if tokens were added to this very tokenizer"))
      << all(finding);
  facts["counted"]["count"] = 31;  // a few were added
  facts["scan"] = {{"bad", 1}, {"total", 8}, {"max", 30}};
  EXPECT_TRUE(says(diagnose(facts_of("embedding.indices", 30, 29, facts)),
                   "model.resize_token_embeddings(len(tokenizer)): len(tokenizer) is 31"));
  facts["no_grad"] = true;  // no training will see the new rows
  EXPECT_TRUE(says(diagnose(facts_of("embedding.indices", 30, 29, facts)), "load tokenizer and model"));
}

TEST(AdviceGiven, OneNumberThatFillsAll) {
  json facts = {{"values", {{31, 128}}}, {"scan", {{"bad", 128}, {"total", 128}, {"min", 31}, {"max", 31}}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 31, 25, facts));
  EXPECT_TRUE(says(finding, "all 128 are 31: look at what fills")) << all(finding);
  EXPECT_FALSE(speaks_of_size(finding)) << all(finding);
  facts["values"] = {{25, 128}};
  facts["scan"] = {{"bad", 128}, {"total", 128}, {"min", 25}, {"max", 25}};  // it may want a row of its own
  EXPECT_TRUE(says(diagnose(facts_of("embedding.indices", 25, 25, facts)), "of the two is meant"));
}

// Whole numbers by one size for all groups are no range that is cut.
TEST(AdviceGiven, GroupsOfOneSize) {
  json facts = {{"computed", {{"text", "i // self.per_site"}, {"line", 31}, {"file", "sites.py"}}},
                {"scan", {{"total", 6}}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 3, 3, facts));
  EXPECT_TRUE(says(finding, "`//` takes all groups to be as large")) << all(finding);
  EXPECT_FALSE(says(finding, "its very end")) << all(finding);
  EXPECT_FALSE(speaks_of_size(finding)) << all(finding);
  facts["computed"]["text"] = "((angle + pi) / (2 * pi) * 3).floor().long()";
  EXPECT_TRUE(says(diagnose(facts_of("embedding.indices", 3, 3, facts)), "its very end gives 3"));
}

// 1768 / 255: a picture of more than 8 bits.
TEST(AdviceGiven, PicturesOfMoreThanEightBits) {
  json facts = {{"scan",
                 {{"value", 6.9333334},
                  {"min", 0.2156863},
                  {"max", 6.9333334},
                  {"bad", 9},
                  {"total", 4096},
                  {"is_float", true}}},
                {"values", json::array()}};
  const Finding finding = diagnose(facts_of("binary_cross_entropy.target", 7, 1, facts));
  EXPECT_TRUE(finding.summary.ends_with("; the highest is 1768 / 255")) << finding.summary;
  EXPECT_TRUE(says(finding, "divide by what they can hold (4095 of 12 bits, 65535 of 16)")) << all(finding);
  EXPECT_FALSE(says(finding, "percentage")) << all(finding);
}

TEST(AdviceGiven, DecoderStart) {
  const Finding finding =
      diagnose(facts_of("embedding.indices", 205, 205,
                        {{"resizable", "model"},
                         {"table", "token"},
                         {"library", {{"owners", {"transformers.models.t5.modeling_t5.T5Stack"}}}},
                         {"special_ids", {{"decoder_start_token_id", 205}, {"pad_token_id", 0}}}}));
  EXPECT_EQ(finding.fix.front(), "model.config.decoder_start_token_id = 0: the pad token, as T5 starts");
  EXPECT_FALSE(says(finding, "tokenizer.pad_token = ")) << all(finding);
  EXPECT_FALSE(says(finding, "resize_token_embeddings")) << all(finding);
  const Finding other =  // another model begins with another token
      diagnose(facts_of("embedding.indices", 205, 205,
                        {{"resizable", "model"},
                         {"table", "token"},
                         {"special_ids", {{"decoder_start_token_id", 205}, {"pad_token_id", 0}}}}));
  EXPECT_TRUE(
      other.fix.front().starts_with("set model.config.decoder_start_token_id to the id of the token that"))
      << all(other);
}

// In uint8 0 - 1 is 255: to ignore it would leave a class out, if it is one.
TEST(AdviceGiven, OneLessInUint8) {
  json facts = {{"values", {{255, 48}}}, {"scan", {{"bad", 48}, {"total", 2304}, {"max", 255}}}};
  EXPECT_TRUE(says(diagnose(facts_of("nll_loss2d_forward.target", 255, 5, facts)), "ignore_index=255"));
  facts["less_one"] = {{"text", "mask = mask - 1"}, {"file", "/home/u/tiles.py"}, {"line", 23}};
  const Finding finding = diagnose(facts_of("nll_loss2d_forward.target", 255, 5, facts));
  EXPECT_TRUE(finding.summary.ends_with("; 255 is what 0 - 1 is in uint8")) << finding.summary;
  EXPECT_TRUE(says(finding,
                   "look at `mask = mask - 1` (tiles.py:23): if 0 is no class, leave it out of the loss "
                   "(ignore_index=255); if it is one, take nothing off"))
      << all(finding);
}

// What is written to may have had another size in earlier calls.
TEST(AdviceGiven, TheHighestIndexOfThisCall) {
  json facts = {{"seen", {{"min", 0}, {"max", 5}, {"count", 2304}, {"source", "calls"}}},
                {"scan", {{"bad", 29}, {"total", 576}, {"max", 3}}}};
  const Finding finding = diagnose(facts_of("index_add.index", 3, 3, facts));
  EXPECT_TRUE(says(finding, "(4 at least: 3 is the highest of this call)")) << all(finding);
}

}  // namespace
}  // namespace trapline::diagnose
