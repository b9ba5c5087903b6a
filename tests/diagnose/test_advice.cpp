// What the report advises: no number without a count, no help that harms, the knob of the user's own call.
#include "advice.hpp"

namespace trapline::diagnose {
namespace {

TEST(AdviceNeed, OneBatchGivesNoNumber) {
  const Finding finding = diagnose(
      facts_of("nll_loss_forward.target", 371, 370, {{"layer", layer("fc.5", "out_features", 370)}}));
  EXPECT_EQ(finding.fix.front(), "look at where the label is made: 1 of 4 is outside [0, 370)");
  EXPECT_EQ(finding.fix.at(1),
            "see which of the two is meant: `fc.5` has 370 outputs, and 371 is the highest of 4 labels "
            "seen");
  EXPECT_FALSE(finding.layer->needed);
}

TEST(AdviceNeed, ACountGivesTheNumberAndSaysOfWhat) {
  const Finding finding = diagnose(facts_of("nll_loss_forward.target", 371, 370,
                                            {{"layer", layer("fc.5", "out_features", 370)},
                                             {"counted", {{"count", 500}, {"of", "len(dataset.classes)"}}}}));
  EXPECT_EQ(finding.fix.front(),
            "change `fc.5` to Linear(..., out_features=500): len(dataset.classes) is 500");
  EXPECT_EQ(finding.layer->needed, 500);
}

TEST(AdviceNeed, TheDataSetKnowsThatThereIsNoSuchClass) {
  const Finding finding = diagnose(facts_of("nll_loss_forward.target", 10, 10,
                                            {{"layer", layer("fc", "out_features", 10)},
                                             {"counted", {{"count", 10}, {"of", "len(dataset.classes)"}}}}));
  EXPECT_EQ(finding.cause, Cause::kLabelOutOfRange);
  EXPECT_NE(finding.summary.find("; len(dataset.classes) is 10: there is no such class"), std::string::npos);
  EXPECT_FALSE(says(finding, "outputs")) << all(finding);
}

TEST(AdviceNeed, OneHotAndTables) {
  const Finding computed = diagnose(facts_of("one_hot.self", 8, 7));
  EXPECT_EQ(computed.fix.front(), "look at where the value is made: 1 of 4 is outside [0, 7)");
  EXPECT_TRUE(
      says(computed, "if 7 is a limit of the program's own (a capacity, a window), mask or leave out"));
  EXPECT_EQ(diagnose(facts_of("one_hot.self", 8, 7, {{"sample", {{"dataset_index", 3}}}})).fix.at(1),
            "see which of the two is meant: num_classes is 7, and 8 is the highest of 4 values seen");
  const Finding finding = diagnose(facts_of(
      "embedding.indices", 213, 200,
      {{"resizable", "model"}, {"table", "token"}, {"counted", {{"count", 215}, {"of", "len(tokenizer)"}}}}));
  EXPECT_EQ(finding.fix.front(), "model.resize_token_embeddings(len(tokenizer)): len(tokenizer) is 215");
}

TEST(AdviceNeed, AnIdThatNoTokenizerHere) {
  const Finding finding = diagnose(facts_of(
      "embedding.indices", 213, 200,
      {{"resizable", "model"}, {"table", "token"}, {"counted", {{"count", 200}, {"of", "len(tokenizer)"}}}}));
  EXPECT_FALSE(says(finding, "resize_token_embeddings")) << "it would change nothing";
  EXPECT_NE(finding.summary.find("len(tokenizer) is 200: its vocabulary has no such id"), std::string::npos);
}

TEST(AdviceHarm, PaddingIsNeverCountedFromTheEnd) {
  for (const std::int64_t padding : {-1, -100}) {
    const Finding finding = diagnose(facts_of("gather.index", padding, 7));
    EXPECT_TRUE(says(finding, "marks padding, gather has no place for it")) << all(finding);
    EXPECT_FALSE(says(finding, "clamp")) << "it hides every other negative index: " << all(finding);
    EXPECT_FALSE(says(finding, "%")) << all(finding);
    EXPECT_FALSE(says(finding, "torch.where")) << all(finding);
  }
  const Finding mixed = diagnose(facts_of("gather.index", -3, 7, {{"values", {{-3, 1}, {-2, 2}}}}));
  EXPECT_TRUE(says(mixed, "see whether these count from the end of something, lack an offset")) << all(mixed);
  EXPECT_FALSE(says(mixed, "index + 7")) << "of relative positions that would be another place";
}

// A page that was not scaled to the model's grid: with more rows it would train on wrong places.
TEST(AdviceHarm, CoordinatesAreScaledAndTheTableStays) {
  const Finding finding =
      diagnose(facts_of("embedding.indices", 1374, 1024,
                        {{"table", "position"},
                         {"counts_from", 1374},
                         {"layer", layer("x_position_embeddings", "num_embeddings", 1024)},
                         {"setting", {{"name", "max_2d_position_embeddings"}, {"value", 1024}}}}));
  EXPECT_EQ(info(finding.cause).code, "TL103") << "a coordinate is no place in a text";
  EXPECT_TRUE(says(finding, "coordinates are scaled to the range")) << all(finding);
  EXPECT_FALSE(says(finding, "more positions")) << all(finding);
  EXPECT_FALSE(speaks_of_size(finding)) << all(finding);
}

TEST(AdviceHarm, OnlyANumberThatProgramsWriteForNothingIsAMarker) {
  const auto of = [](int id) {
    return diagnose(facts_of("embedding.indices", id, 50,
                             {{"table", "other"}, {"layer", layer("user_embedding", "num_embeddings", 50)}}));
  };
  EXPECT_FALSE(says(of(-231), "marks")) << all(of(-231));
  EXPECT_FALSE(says(of(-231), "stands for")) << all(of(-231));
  EXPECT_TRUE(says(of(-999), "see what -999 stands for")) << all(of(-999));
}

TEST(AdviceHarm, AColumnOfTokenTypesIsNamedAsSuch) {
  const Finding finding =
      diagnose(facts_of("embedding.indices", 32, 32,
                        {{"table", "other"},
                         {"variable", {{"name", "types"}, {"index", {3, 2}}}},
                         {"layer", layer("token_type_embeddings_2", "num_embeddings", 32)},
                         {"setting", {{"name", "type_vocab_sizes[2]"}, {"value", 32}}}}));
  EXPECT_TRUE(says(finding, "keep `types[..., 2]` below 32")) << all(finding);
}

TEST(AdviceHarm, ThePadTokenKeepsItsOwnLines) {
  const Finding finding = diagnose(facts_of(
      "embedding.indices", 205, 205,
      {{"resizable", "model"}, {"special_ids", {{"decoder_start_token_id", 205}, {"pad_token_id", 205}}}}));
  EXPECT_TRUE(says(finding, "model.resize_token_embeddings(len(tokenizer))"));
  EXPECT_TRUE(says(finding, "tokenizer.pad_token = tokenizer.eos_token"));
}

TEST(AdviceHarm, GenerationIsNotTruncated) {
  const Finding finding = diagnose(facts_of("embedding.indices", 64, 64,
                                            {{"table", "position"},
                                             {"tensor", {{"shape", {4, 1}}, {"dtype", "int64"}}},
                                             {"generation", {{"prompt", 10}, {"wanted", 100}}}}));
  EXPECT_EQ(finding.cause, Cause::kPositionIndexOutOfRange);
  EXPECT_EQ(finding.fix.front(),
            "max_new_tokens=54 instead of 100: with the prompt of 10 tokens they fit into 64 positions");
  EXPECT_FALSE(says(finding, "truncat")) << all(finding);
}

TEST(AdviceHarm, WhatIsComputedIsNotCountedFromOne) {
  const json best = {{"name", "best"}, {"text", "x.argmax(1) + 1"}, {"line", 9}, {"by", "argmax"}};
  const json bucket = {{"name", "bucket"},
                       {"text", "torch.bucketize(age, edges)"},
                       {"line", 9},
                       {"by", "bucketize"},
                       {"edges", 100}};
  for (const char* contract :
       {"embedding.indices", "gather.index", "nll_loss_forward.target", "one_hot.self"}) {
    json facts = facts_of(contract, 100, 100,
                          {{"scan", {{"total", 400}, {"bad", 3}, {"min", 1}, {"max", 100}}},
                           {"sample", {{"dataset_index", 3}}}});
    EXPECT_TRUE(says(diagnose(facts), "from 1") || says(diagnose(facts), "labels - 1")) << contract;
    facts["computed"] = best;
    const Finding finding = diagnose(facts);
    EXPECT_FALSE(says(finding, "counted from 1") || says(finding, "labels - 1")) << all(finding);
    EXPECT_TRUE(says(finding, "look at `best = x.argmax(1) + 1` (line 9)")) << all(finding);
    EXPECT_TRUE(says(finding, "argmax counts from 0")) << all(finding);
  }
  json table =
      facts_of("embedding.indices", 100, 100, {{"scan", {{"total", 400}, {"min", 1}, {"max", 100}}}});
  table["computed"] = bucket;
  EXPECT_TRUE(says(diagnose(table), "101")) << all(diagnose(table));
  EXPECT_TRUE(says(diagnose(table),
                   "bucketize with 100 edges gives 0 to 100: 101 buckets, the last for what lies beyond "))
      << all(diagnose(table));
}

TEST(AdviceHarm, CountedFromOneOnlyWhereItCanBe) {
  const auto from_one = [](const char* contract, std::int64_t min, std::int64_t max, json args) {
    return says(diagnose(facts_of(contract, 100, 100,
                                  {{"scan", {{"total", 400}, {"bad", 3}, {"min", min}, {"max", max}}},
                                   {"sample", {{"dataset_index", 3}}},
                                   {"args", std::move(args)}})),
                "if they are counted from 1 (no 0 among 400 seen), number ");
  };
  for (const char* contract : {"embedding.indices", "index_select.index", "scatter.index"}) {
    EXPECT_TRUE(from_one(contract, 1, 100, json::object())) << contract;
    EXPECT_FALSE(from_one(contract, 0, 100, json::object())) << contract;
    EXPECT_FALSE(from_one(contract, 1, 101, json::object())) << contract;
  }
  EXPECT_FALSE(from_one("embedding.indices", 1, 100, {{"padding_idx", 0}})) << "0 is for padding";
}

TEST(AdviceHarm, AValueMayBeWrongInsteadOfTheSize) {
  const json trained = {{"layer", layer("entities", "num_embeddings", 40)},
                        {"values", {{47, 1}, {52, 5}}},
                        {"scan", {{"bad", 6}, {"total", 16}, {"min", 5}, {"max", 52}}},
                        {"library", {{"owner", "somelib"}, {"maker", "Net"}, {"owners", {"somelib.Net"}}}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 47, 40, trained));
  EXPECT_EQ(finding.fix.at(0), "look at where the ids are computed: 6 of 16 are outside [0, 40)");
  EXPECT_EQ(finding.fix.at(1),
            "see which of the two is meant: `entities` has 40 rows, and 52 is the highest of 16 ids "
            "seen");
  // One value far beyond in the whole data set is no count of classes.
  const Finding stray =
      diagnose(facts_of("embedding.indices", 900, 40,
                        {{"seen", {{"min", 0}, {"max", 900}, {"count", 4000}, {"source", "dataset"}}}}));
  EXPECT_EQ(stray.fix.at(0), "look at where the ids are computed: 1 of 4 is outside [0, 40)");
  EXPECT_FALSE(says(stray, "901")) << all(stray);
}

TEST(AdviceHarm, NoHuggingFaceLinesElsewhere) {
  const Finding finding =
      diagnose(facts_of("embedding.indices", 100, 100,
                        {{"table", "token"}, {"layer", layer("tok_emb", "num_embeddings", 100)}}));
  EXPECT_FALSE(says(finding, "resize_token_embeddings")) << all(finding);
  EXPECT_FALSE(says(finding, "okenizer")) << all(finding);
}

TEST(AdvicePosition, TheFirstRowsOfATableMayBeOthers) {
  const Finding finding =
      diagnose(facts_of("gather.index", 514, 514,
                        {{"table", "position"},
                         {"position",
                          {{"rows", 514},
                           {"offset", 2},
                           {"length", 600},
                           {"name", "roberta.embeddings.position_embeddings"},
                           {"setting", "max_position_embeddings"}}},
                         {"library",
                          {{"caller", "transformers"},
                           {"owner", "transformers"},
                           {"owners", {"transformers.modeling_utils.PreTrainedModel"}}}}}));
  EXPECT_EQ(finding.cause, Cause::kPositionIndexOutOfRange);
  EXPECT_NE(finding.summary.find("`roberta.embeddings.position_embeddings` has 514 rows, the first 2 of them "
                                 "for other uses: the sequence of 600 positions is too long"),
            std::string::npos)
      << finding.summary;
  EXPECT_TRUE(says(finding, "truncation=True, max_length=512")) << all(finding);
}

TEST(AdviceKnob, TheSettingThatATableHasItsRowsBy) {
  const json library = {
      {"owner", "somelib"}, {"maker", "Net"}, {"setting", "max_z"}, {"owners", {"somelib.Net"}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 47, 40,
                                            {{"layer", layer("atoms", "num_embeddings", 40)},
                                             {"values", {{47, 1}}},
                                             {"scan", {{"bad", 1}, {"total", 16}, {"min", 5}, {"max", 47}}},
                                             {"library", library}}));
  EXPECT_TRUE(says(finding, "which of the two is meant: `atoms` has 40 rows, by max_z of Net, and 47 is"))
      << all(finding);
}

const json kTransformersHead = {{"caller", "transformers"},
                                {"owner", "transformers"},
                                {"maker", "BertForSequenceClassification"},
                                {"owners",
                                 {"transformers.models.bert.modeling_bert.BertForSequenceClassification",
                                  "transformers.modeling_utils.PreTrainedModel"}}};

TEST(AdviceKnob, TheHeadOfALibrarysModel) {
  Finding finding = diagnose(facts_of("nll_loss_forward.target", 3, 3,
                                      {{"layer", layer("classifier", "out_features", 3)},
                                       {"library", kTransformersHead},
                                       {"counted", {{"count", 4}, {"of", "dataset.features"}}}}));
  EXPECT_EQ(finding.fix.front(),
            "from_pretrained(..., num_labels=4), or num_labels in the config: dataset.features is 4");
  EXPECT_FALSE(says(finding, "change `classifier`")) << all(finding);
  EXPECT_EQ(finding.layer->needed, 4);
  finding =
      diagnose(facts_of("nll_loss_forward.target", 3, 3,
                        {{"layer", layer("classifier", "out_features", 3)}, {"library", kTransformersHead}}));
  EXPECT_EQ(finding.fix.at(1),
            "if there are meant to be more than 3 classes: from_pretrained(..., num_labels=N), or num_labels "
            "in the config, N as many as there are classes (4 at least: 3 is the highest of 4 labels seen)");
  EXPECT_FALSE(finding.layer->needed);
}

TEST(AdviceKnob, AnUnknownLibraryIsNamed) {
  const Finding finding = diagnose(facts_of(
      "nll_loss_forward.target", 3, 3,
      {{"layer", layer("net.head", "out_features", 3)},
       {"library",
        {{"caller", ""}, {"owner", "somelib"}, {"maker", "Net"}, {"owners", {"somelib.nets.Net"}}}}}));
  EXPECT_EQ(finding.fix.at(1),
            "see which of the two is meant: `net.head` has 3 outputs, and 3 is the highest of 4 labels "
            "seen");
}

TEST(AdviceKnob, NoCallThatTheUserDoesNotMake) {
  const Finding inside = diagnose(facts_of("nll_loss_forward.target", -1, 5,
                                           {{"scan", {{"also", -100}}}, {"library", kTransformersHead}}));
  EXPECT_FALSE(says(inside, "nn.CrossEntropyLoss")) << all(inside);
  EXPECT_TRUE(says(inside, "labels[labels == -1] = -100")) << all(inside);
  const Finding own = diagnose(facts_of("nll_loss_forward.target", -1, 5, {{"scan", {{"also", -100}}}}));
  EXPECT_TRUE(says(own, "nn.CrossEntropyLoss(ignore_index=-1)")) << all(own);
}

TEST(AdviceNegative, ArithmeticIsNoPadding) {
  const Finding several = diagnose(facts_of("embedding.indices", -39, 50,
                                            {{"table", "token"},
                                             {"variable", {{"name", "local"}, {"index", {3}}}},
                                             {"values", {{-39, 1}, {-7, 2}}},
                                             {"scan", {{"bad", 80}, {"total", 160}, {"min", -50}}}}));
  EXPECT_TRUE(says(several, "80 of 160 are negative (min -50): look at where `local` is computed"))
      << all(several);
  EXPECT_FALSE(says(several, "padding_idx")) << all(several);
  const Finding both =
      diagnose(facts_of("embedding.indices", 67, 50, {{"scan", {{"min", -5}, {"max", 67}}}}));
  EXPECT_NE(both.summary.find("both sides"), std::string::npos) << all(both);
  EXPECT_FALSE(says(both, "rows")) << all(both);
}

TEST(AdviceNegative, OnlyOneMarksALabel) {
  const Finding other = diagnose(facts_of("one_hot.self", -3, 25));
  EXPECT_EQ(other.summary.find("ignore label"), std::string::npos) << all(other);
  const Finding marked =
      diagnose(facts_of("one_hot.self", -1, 5, {{"variable", {{"name", "topic"}, {"index", {3}}}}}));
  EXPECT_TRUE(says(marked, "F.one_hot(topic.masked_fill(~known, 0), 5)")) << all(marked);
  EXPECT_FALSE(says(marked, "tensor[")) << all(marked);
}

TEST(AdviceTable, TheSettingThatMadeIt) {
  const Finding finding = diagnose(facts_of(
      "embedding.indices", 1, 1,
      {{"table", "other"}, {"resizable", ""}, {"setting", {{"name", "type_vocab_size"}, {"value", 1}}}}));
  EXPECT_TRUE(says(finding, "config.type_vocab_size=1 made this table")) << all(finding);
  EXPECT_FALSE(says(finding, "resize_token_embeddings")) << all(finding);
  EXPECT_FALSE(says(finding, "vocabulary")) << all(finding);
}

TEST(AdvicePosition, OfThisCallAlone) {
  const json call = {{"table", "position"},
                     {"text", false},
                     {"scan", {{"max", 25}}},
                     {"seen", {{"min", 0}, {"max", 498}, {"count", 900}}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 17, 17, call));
  EXPECT_NE(finding.summary.find("sequence of 26 positions"), std::string::npos) << all(finding);
  EXPECT_FALSE(says(finding, "truncate")) << all(finding);
  EXPECT_FALSE(says(finding, "499")) << all(finding);
}

TEST(AdvicePosition, TimeStepsAreNoLength) {
  const Finding finding = diagnose(
      facts_of("embedding.indices", 100, 100,
               {{"table", "position"}, {"counts_from", 100}, {"scan", {{"min", 100}, {"max", 109}}}}));
  EXPECT_NE(finding.summary.find("positions go to 109"), std::string::npos) << all(finding);
  EXPECT_FALSE(says(finding, "truncat")) << all(finding);
}

// A decision transformer's steps of an episode: scaled they would be other steps.
TEST(AdvicePosition, StepsOfALongEpisodeNeedRowsOrACut) {
  const Finding finding = diagnose(facts_of("embedding.indices", 52, 50,
                                            {{"table", "position"},
                                             {"counts_from", 52},
                                             {"scan", {{"min", 12}, {"max", 59}}},
                                             {"layer", layer("embed_timestep", "num_embeddings", 50)},
                                             {"position",
                                              {{"rows", 50},
                                               {"offset", 0},
                                               {"name", "embed_timestep"},
                                               {"setting", "max_ep_len"},
                                               {"value", 50}}}}));
  EXPECT_EQ(finding.fix.front(),
            "look at where the positions are computed: they go to 59, and the table has 50 rows; a count "
            "that goes on "
            "from call to call has to begin anew with each sequence");
  EXPECT_TRUE(
      says(finding,
           "only if they count the steps of what may be so long (an episode, a series), and that is not "
           "cut before: make the model with max_ep_len as large as the longest has steps, 60 at least, "
           "instead of 50, or cut what is longer"))
      << all(finding);
  EXPECT_FALSE(says(finding, "scaled")) << all(finding);
}

TEST(AdvicePosition, VirtualTokensAreTakenOff) {
  const Finding finding =
      diagnose(facts_of("embedding.indices", 64, 64,
                        {{"table", "position"}, {"virtual_tokens", 20}, {"library", kTransformersHead}}));
  EXPECT_TRUE(says(finding, "max_length=44")) << all(finding);
}

TEST(AdviceKnob, ChoicesAreNoLabelsOfAConfig) {
  json library = kTransformersHead;
  library["owners"][0] = "transformers.models.bert.modeling_bert.BertForMultipleChoice";
  const Finding finding = diagnose(facts_of(
      "nll_loss_forward.target", 4, 4, {{"layer", layer("x", "out_features", 4)}, {"library", library}}));
  EXPECT_TRUE(says(finding, "beyond the choices")) << all(finding);
  EXPECT_FALSE(says(finding, "num_labels")) << all(finding);
}

TEST(AdviceHarm, ALoopThatGeneratesIsNotTruncated) {
  const json call = {{"table", "position"},
                     {"tensor", {{"shape", {1, 33}}, {"dtype", "int64"}}},
                     {"grows", true},
                     {"scan", {{"max", 32}}}};
  const Finding finding = diagnose(facts_of("embedding.indices", 32, 32, call));
  EXPECT_FALSE(says(finding, "truncate")) << all(finding);
  EXPECT_TRUE(says(finding, "its last 32 tokens in each step")) << all(finding);
}

TEST(AdviceHarm, TheLastRowIsNoPadding) {
  json facts = facts_of("embedding.indices", -1, 32, {{"table", "token"}, {"args", {{"padding_idx", 31}}}});
  EXPECT_FALSE(says(diagnose(facts), "31")) << all(diagnose(facts));
  facts["resizable"] = "model";
  EXPECT_TRUE(says(diagnose(facts), "config.pad_token_id = tokenizer.pad_token_id")) << all(diagnose(facts));
  facts["args"]["padding_idx"] = 3;
  EXPECT_TRUE(says(diagnose(facts), "masked_fill(ids == -1, 3)")) << all(diagnose(facts));
}

TEST(AdviceHarm, TwoIgnoreLabelsAreNotSwapped) {
  const Finding finding =
      diagnose(facts_of("nll_loss_forward.target", -1, 5, {{"scan", {{"also", -100}, {"min", -100}}}}));
  EXPECT_FALSE(says(finding, "ignore_index=-1")) << all(finding);
  EXPECT_TRUE(says(finding, "labels[labels == -1] = -100")) << all(finding);
}

TEST(AdviceHarm, AnIgnoreLabelIsNotCountedFromTheEnd) {
  const Finding finding = diagnose(facts_of("index.indices", -100, 5, {{"scan", {{"lo", -5}}}}));
  EXPECT_FALSE(says(finding, "keep them within")) << all(finding);
  EXPECT_TRUE(says(finding, "masked_fill(index == -100, 0)")) << all(finding);
}

TEST(AdviceMask, WhatInterpolationMakes) {
  json facts = facts_of("nll_loss_forward.target", 88, 5,
                        {{"tensor", {{"shape", {8, 32, 32}}, {"dtype", "int64"}, {"device", "cpu"}}},
                         {"values", {{88, 200}, {42, 100}, {171, 80}, {130, 20}}},
                         {"scan", {{"bad", 512}, {"total", 8192}, {"max", 255}, {"also", 255}}}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(says(finding, "Image.NEAREST")) << all(finding);
  EXPECT_FALSE(says(finding, "outputs")) << all(finding);
  facts["values"] = {{6, 500}};
  facts["scan"]["value"] = 6;
  const Finding one = diagnose(facts);
  EXPECT_FALSE(says(one, "NEAREST")) << all(one);
  EXPECT_TRUE(says(one, "and 6 is the highest of 8192")) << "255 is what the loss leaves out\n" << all(one);
  facts["values"] = {{127, 48}};
  facts["scan"]["value"] = 127;
  facts["scan"]["max"] = 127;
  EXPECT_TRUE(says(diagnose(facts), "Image.NEAREST")) << "half of the ignored 255, half of class 0";
}

TEST(AdviceKnob, OneHotOfALibrary) {
  const json library = {{"caller", "somelib"}, {"callers", {"somelib.encode"}}};
  EXPECT_EQ(diagnose(facts_of("one_hot.self", 12, 12, {{"library", library}})).fix.at(1),
            "see which of the two is meant: num_classes is 12, and 12 is the highest of 4 values seen");
}

TEST(AdviceSample, IsNotAskedForWhereItsDataSetFails) {
  const Finding finding = diagnose(
      facts_of("index_select.index", 28, 28, {{"sample", {{"dataset_index", 27}, {"by", "inside"}}}}));
  EXPECT_FALSE(says(finding, "print(")) << all(finding);
}

json scanned(std::int64_t bad, std::int64_t total, double min, double max) {
  return {{"bad", bad}, {"total", total}, {"min", min}, {"max", max}};
}

TEST(AdviceIndex, WhatIsWrittenToIsNotEnlargedFirst) {
  const Finding finding =
      diagnose(facts_of("scatter.index", 61, 40, {{"variable", {{"name", "place"}, {"index", {3}}}}}));
  EXPECT_EQ(finding.fix.front(),
            "look at where `place` is computed: 1 of 4 is outside [0, 40), 61 is the highest");
  EXPECT_TRUE(finding.fix.back().starts_with("only if ")) << finding.fix.back();
}

TEST(AdviceIndex, AnIgnoreLabelIsNoSize) {
  const Finding finding = diagnose(facts_of("scatter.index", 255, 3));
  EXPECT_NE(finding.summary.find("255 looks like an ignore label, which scatter does not have"),
            std::string::npos);
  EXPECT_EQ(all(finding).find("256"), std::string::npos);
}

TEST(AdviceIndex, OfALargerTensor) {
  const Finding finding = diagnose(
      facts_of("gather.index", 473, 100, {{"scan", {{"bad", 4}, {"total", 4}, {"min", 473}, {"max", 900}}}}));
  EXPECT_TRUE(says(finding, "all 4 are outside [0, 100), 473 is the lowest: they may be meant for"));
}

TEST(AdviceTarget, IsNotDestroyed) {
  json one = facts_of("binary_cross_entropy.target", 87, 1, {{"kinds", {{"whole", false}, {"zero", false}}}});
  one["scan"].merge_patch(scanned(1, 16, 0.179, 87.0));
  EXPECT_EQ(diagnose(one).fix.front(),
            "correct that record if wrong; if not, look at what made the targets (a model without a limit, a "
            "scaler fitted on other "
            "data): 1 of 16 is outside [0, 1]");
  json scaled = one;
  scaled["scan"].merge_patch(scanned(128, 128, 1.1, 1.48));
  EXPECT_TRUE(says(diagnose(scaled), "128 of 128 are above 1"));
  json percent = one;
  percent["scan"].merge_patch(scanned(60, 64, 0.5, 99.5));
  EXPECT_EQ(diagnose(percent).fix.front(), "look at where the target is computed: 60 of 64 are above 1");
  EXPECT_EQ(diagnose(percent).fix.at(1), "if they are percentages, divide them by 100 where they are read");
  json classes =
      facts_of("binary_cross_entropy.target", 3, 1, {{"kinds", {{"whole", true}, {"zero", true}}}});
  classes["scan"].merge_patch(scanned(8, 16, 0.0, 3.0));
  EXPECT_TRUE(says(diagnose(classes), "F.cross_entropy"));
  for (const json& facts : {one, scaled, percent, classes}) {
    EXPECT_FALSE(says(diagnose(facts), "clamp")) << all(diagnose(facts));
    EXPECT_FALSE(says(diagnose(facts), "> 0")) << all(diagnose(facts));
  }
}

TEST(AdviceSampler, NoModelIsAsked) {
  json facts =
      facts_of("multinomial.self", 0, 0,
               {{"sampler",
                 {{"name", "sampler.weights"}, {"variable", {{"name", "sample_weight"}, {"index", {3}}}}}}});
  facts["scan"].merge_patch({{"value", "nan"}, {"reason", 3}, {"is_float", true}});
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.summary,
            "multinomial: sampler.weights[3] (sample_weight[3]) is nan, but the weights of a sampler must be "
            "finite and >= 0");
  EXPECT_FALSE(says(finding, "logits"));
  EXPECT_FALSE(says(finding, "temperature"));
}

}  // namespace
}  // namespace trapline::diagnose
