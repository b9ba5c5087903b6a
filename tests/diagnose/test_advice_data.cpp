// What the report advises where the data tell: counted from 1, one data set that differs, one column, no
// labels.
#include "advice.hpp"

namespace trapline::diagnose {
namespace {

TEST(AdviceOneBased, APartOfTheData) {
  const Finding finding = diagnose(facts_of("nll_loss_forward.target", 3, 3,
                                            {{"scan", {{"min", 1}, {"max", 3}, {"total", 16}, {"bad", 7}}},
                                             {"seen", {{"min", 0}, {"max", 3}, {"count", 64}}}}));
  EXPECT_NE(finding.summary.find("a part of the data may be counted from 1"), std::string::npos)
      << all(finding);
}

TEST(AdviceOneBased, OneDataSetOfSeveral) {
  const json facts = facts_of(
      "nll_loss_forward.target", 6, 6,
      {{"scan", {{"min", 1}, {"max", 6}, {"total", 6}}},
       {"seen", {{"min", 1}, {"max", 6}, {"count", 60}, {"source", "dataset"}, {"several", true}}},
       {"sample",
        {{"dataset_index", 41}, {"dataset", {{"name", "travel"}, {"type", "Set"}, {"length", 60}}}}}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(says(finding, "see first what has number 0")) << all(finding);
  EXPECT_EQ(finding.fix.at(1), "if the program's other data sets begin at 0: label - 1, in `travel` alone");
  EXPECT_FALSE(says(finding, "labels = labels - 1")) << all(finding);
}

json part_of(std::int64_t min, std::int64_t max, json more) {
  json part = {{"min", min}, {"max", max}, {"bad", 9}, {"count", 52}, {"others_min", 0}, {"others_max", 5}};
  part.update(more);
  return {{"min", 0}, {"max", max}, {"count", 150}, {"source", "dataset"}, {"part", part}};
}

TEST(AdvicePart, TheOneThatCountsFrom1) {
  const json facts =
      facts_of("nll_loss_forward.target", 6, 6,
               {{"seen", part_of(1, 6, {{"position", 2}})}, {"layer", layer("net", "out_features", 6)}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(
      finding.summary.ends_with("; only `datasets[2]` of the ConcatDataset has such labels (9 of its "
                                "52, from 1 to 6; in the others from 0 to 5)"))
      << all(finding);
  ASSERT_EQ(finding.fix.size(), 1u) << "a size that fits this part alone would mix two lists" << all(finding);
  EXPECT_EQ(finding.fix[0], "if `datasets[2]` counts its labels from 1, subtract 1 there, and only there");
  EXPECT_FALSE(finding.layer->needed) << "the model is not what differs";
}

TEST(AdvicePart, OneOfTheProgramsDataSets) {
  const Finding finding =
      diagnose(facts_of("nll_loss_forward.target", 7, 6, {{"seen", part_of(0, 7, json::object())}}));
  EXPECT_NE(finding.summary.find("only this data set has such labels (9 of its 52, from 0 to 7; in the "
                                 "program's other data sets from 0 to 5)"),
            std::string::npos)
      << all(finding);
  EXPECT_EQ(finding.fix[0],
            "see whether this data set makes its labels as the others do, by the same list of classes, or "
            "the size was taken of the others alone");
}

TEST(AdvicePart, ThoseOfTheTrainingAreOthers) {
  json facts = facts_of("nll_loss_forward.target", 83, 20,
                        {{"layer", layer("fc", "out_features", 20)},
                         {"scan", {{"bad", 42}, {"total", 50}, {"max", 94}}},
                         {"variable", {{"name", "y"}, {"index", {0}}}}});
  EXPECT_TRUE(says(diagnose(facts), "which of the two is meant: `fc` has 20 outputs"))
      << all(diagnose(facts));
  facts["trained"] = {{"max", 19}, {"count", 250}};
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("; in training they went up to 19 (the last 250)"))
      << finding.summary;
  EXPECT_EQ(
      finding.fix,
      std::vector<std::string>{
          "compare how `y` is made with the labels of the training: both need the same list of classes, "
          "and `fc` as many outputs as it is long: 42 of 50 are outside [0, 20)"});
  facts["scan"]["bad"] = 1;  // which may be wrong itself
  EXPECT_EQ(diagnose(facts).summary.find("in training"), std::string::npos);
}

TEST(AdvicePart, ThoseOfAnotherTable) {
  const json facts = facts_of("embedding.indices", 8, 2,
                              {{"layer", layer("tables.0", "num_embeddings", 2)},
                               {"scan", {{"bad", 55}, {"total", 64}, {"max", 11}}},
                               {"other_head", {{"name", "tables.2"}, {"places", 12}}}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("; `tables.2` has 12 rows, as many as these need"))
      << finding.summary;
  EXPECT_EQ(
      finding.fix.front(),
      "look at whether ids and tables are paired in the same order: `tables.0` has 2, and as many as these "
      "need has `tables.2`: a tuple, a list and zip() pair by order, not by name");
  EXPECT_FALSE(speaks_of_size(finding)) << all(finding);
}

TEST(AdvicePart, TargetsInPercent) {
  json facts = facts_of(
      "binary_cross_entropy.target", 73, 1,
      {{"scan",
        {{"value", 73.1}, {"is_float", true}, {"bad", 18}, {"total", 64}, {"min", 0.001}, {"max", 99.1}}}});
  EXPECT_TRUE(says(diagnose(facts), "if they are percentages, divide them by 100")) << all(diagnose(facts));
  facts["scan"]["min"] = -0.9;
  EXPECT_TRUE(says(diagnose(facts), "some are below 0, which no probability is")) << all(diagnose(facts));
  EXPECT_FALSE(says(diagnose(facts), "parts of a whole")) << all(diagnose(facts));
  facts["seen"] = part_of(0, 1, {{"position", 2}, {"bad", 49}, {"max", 99.5}, {"others_max", 1.0}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(
      finding.summary.ends_with("; only `datasets[2]` of the ConcatDataset has such targets (49 of its 52, "
                                "from 0 to 99.5; in the others from 0 to 1)"))
      << finding.summary;
  EXPECT_EQ(finding.fix,
            std::vector<std::string>{
                "compare how `datasets[2]` makes its targets with the others: all have to lie in [0, 1]; "
                "if its are percentages, divide them by 100 there, and only there"});
  facts["seen"]["part"]["bad"] = 1;  // a record of it
  EXPECT_FALSE(says(diagnose(facts), "as the others do")) << all(diagnose(facts));
}

TEST(AdvicePart, OfIds) {
  const Finding finding =
      diagnose(facts_of("embedding.indices", 7, 6, {{"seen", part_of(0, 7, {{"position", 0}})}}));
  EXPECT_EQ(finding.fix[0],
            "see whether `datasets[0]` makes its ids as the others do, by the same numbering, or the size "
            "was taken of the others alone");
  EXPECT_TRUE(
      says(finding,
           "of the two is meant: there are 6 rows, and 7 is the highest of 150 ids of the whole data set"))
      << all(finding);
}

TEST(AdviceOneBased, NotWhere0IsTheBlank) {
  const Finding finding =
      diagnose(facts_of("_ctc_loss.targets", 23, 23,
                        {{"scan", {{"min", 1}, {"max", 23}, {"total", 81}}},
                         {"seen", {{"min", 1}, {"max", 23}, {"count", 81}, {"source", "dataset"}}}}));
  EXPECT_EQ(all(finding).find("1-based"), std::string::npos) << all(finding);
  EXPECT_FALSE(says(finding, "- 1")) << all(finding);
}

TEST(AdviceHarm, OneStrayIdAmongThousandsIsRatherWrong) {
  const Finding finding = diagnose(
      facts_of("embedding.indices", 265, 256,
               {{"scan", {{"bad", 1}, {"total", 1408}}}, {"layer", layer("kmer", "num_embeddings", 256)}}));
  EXPECT_EQ(finding.fix.front(), "look at where the ids are computed: 1 of 1408 is outside [0, 256)")
      << all(finding);
  const Finding fill = diagnose(facts_of("embedding.indices", 255, 21, {{"scan", {{"total", 472}}}}));
  EXPECT_EQ(fill.fix.front(),
            "look at where the ids are computed: 1 of 472 is outside [0, 21); 255 is also what -1 becomes in "
            "uint8, and a usual fill value");
}

TEST(AdviceHarm, OneIsNotTakenOffALargerVariable) {
  json facts = facts_of("embedding.indices", 7, 7,
                        {{"scan", {{"total", 128}, {"min", 1}, {"max", 7}, {"bad", 22}}},
                         {"variable", {{"name", "x_cat"}, {"index", {3, 1}}}},
                         {"seen", {{"min", 1}, {"max", 7}, {"count", 1176}, {"source", "dataset"}}}});
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with(
      "if they are counted from 1 (no 0 among 1176 seen), number ids "))
      << all(diagnose(facts));
  facts["variable"] = {{"name", "days"}, {"index", {3}}};
  EXPECT_TRUE(diagnose(facts).fix.front().starts_with(
      "if they are counted from 1 (no 0 among 1176 seen), number days "))
      << all(diagnose(facts));
}

TEST(AdviceHarm, TheFieldThatAloneIsBadIsNamed) {
  const Finding finding = diagnose(
      facts_of("embedding.indices", 70, 70, {{"scan", {{"bad", 10}, {"total", 400}}}, {"in_column", 3}}));
  EXPECT_TRUE(says(finding, "10 of 400 are outside [0, 70), all in column 3")) << all(finding);
}

TEST(AdviceHarm, ATestSetWithoutLabels) {
  const json none = {{"scan", {{"bad", 16}, {"total", 16}, {"min", -1}, {"max", -1}, {"also", -100}}},
                     {"values", json::array({json::array({-1, 16})})}};
  const Finding finding = diagnose(facts_of("nll_loss_forward.target", -1, 3, none));
  EXPECT_TRUE(finding.summary.ends_with("; every label of this call is -1: this data set seems to have none"))
      << all(finding);
  EXPECT_FALSE(says(finding, "labels == -1")) << all(finding);
  EXPECT_TRUE(says(finding, "without labels")) << all(finding);
}

TEST(AdviceHarm, TargetsThatAreNanAsAWholeAreNotMissing) {
  const auto nan = [](std::int64_t bad) {
    return diagnose(facts_of("binary_cross_entropy.target", 0, 1,
                             {{"tensor", {{"dtype", "float32"}}},
                              {"scan", {{"value", "nan"}, {"bad", bad}, {"total", 128}, {"reason", 3}}}}));
  };
  EXPECT_TRUE(nan(128).summary.ends_with("as are all targets of this call: they were computed so"))
      << all(nan(128));
  EXPECT_FALSE(says(nan(128), "leave such targets out")) << all(nan(128));
  EXPECT_TRUE(says(nan(1), "if it is missing in the data, leave such targets out")) << all(nan(1));
}

TEST(AdviceHarm, WhatALookUpDidNotFind) {
  const Finding finding = diagnose(facts_of("one_hot.self", -1, 57));
  EXPECT_TRUE(finding.summary.ends_with("; -1 often marks what is not known")) << all(finding);
  EXPECT_TRUE(says(finding, "a look-up that found nothing")) << all(finding);
}

// "solvent_index" of a graph is no number of a node, but its name has the word.
TEST(AdviceData, WhatBatchingAddedIsTold) {
  const Finding finding = diagnose(facts_of("embedding.indices", 17, 12,
                                            {{"layer", layer("solvent", "num_embeddings", 12)},
                                             {"raised", {{"attribute", "solvent_index"}, {"value", 5}}}}));
  EXPECT_TRUE(finding.summary.ends_with(
      "in its own graph it is 5: batching added the nodes of the graphs before to `solvent_index`"))
      << finding.summary;
  EXPECT_TRUE(says(finding, "give it a name without `index`")) << all(finding);
  EXPECT_FALSE(says(finding, "at least")) << all(finding);
}

// Atoms have no degree of 0, and one of 5 is no label that is counted from 1.
TEST(AdviceData, ANumberThatIsMadeOneHotIsNoLabel) {
  json facts = facts_of("one_hot.self", 5, 5, {{"seen", {{"min", 1}, {"max", 5}, {"count", 36}}}});
  const auto with = [&](const char* code) {
    facts["origin"] = {{"file", "atoms.py"}, {"line", 59}, {"function", "forward"}, {"code", code}};
    return diagnose(facts);
  };
  Finding finding = with("bonds = F.one_hot(degree, num_classes=MAX_DEGREE + 1)");
  EXPECT_EQ(finding.summary.find("1-based"), std::string::npos) << finding.summary;
  EXPECT_FALSE(says(finding, "labels = labels - 1")) << all(finding);
  EXPECT_TRUE(says(finding, "if they are counted from 1")) << all(finding);
  finding = with("y = F.one_hot(class_ids, 5)");
  EXPECT_NE(finding.summary.find("labels look 1-based"), std::string::npos) << finding.summary;
}

TEST(AdviceData, LabelsThatIndexAreCountedFromOne) {
  const json facts = facts_of("index.indices", 10, 10,
                              {{"table", "labels"},
                               {"scan", {{"min", 1}}},
                               {"seen", {{"min", 1}, {"max", 10}, {"count", 900}, {"source", "dataset"}}}});
  const Finding finding = diagnose(facts);
  EXPECT_NE(finding.summary.find("labels look 1-based"), std::string::npos) << finding.summary;
  EXPECT_TRUE(says(finding, "labels = labels - 1")) << all(finding);
  EXPECT_FALSE(says(finding, "larger") || says(finding, "at least")) << all(finding);
}

// A few of many are outside: raw scores would be mostly so.
TEST(AdviceData, ProbabilitiesAFewOfWhichAreOutsideAreNoLogits) {
  json facts = facts_of("bernoulli.p", 1, 1);
  facts["scan"].merge_patch(
      {{"is_float", true}, {"value", -0.25}, {"min", -0.25}, {"max", 0.9}, {"bad", 2}, {"total", 64}});
  EXPECT_FALSE(says(diagnose(facts), "logits")) << all(diagnose(facts));
  facts["scan"].merge_patch({{"bad", 40}, {"max", 3.5}});
  EXPECT_TRUE(says(diagnose(facts), "(logits), the sigmoid is missing where they are made"))
      << all(diagnose(facts));
}

// 36 pads the plates; -1 is what str.find() gave for a character that the alphabet lacks.
TEST(AdviceData, WhereAnotherMarkIsThereMinusOneIsNone) {
  json facts =
      facts_of("nll_loss_forward.target", -1, 37, {{"scan", {{"min", -1}, {"max", 36}, {"also", 36}}}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("; what is not to count is marked with 36 here")) << finding.summary;
  EXPECT_NE(finding.fix.front().find("if a look-up that found nothing gave it (str.find"), std::string::npos)
      << all(finding);
  EXPECT_TRUE(says(finding, "labels[labels == -1] = 36")) << all(finding);
  facts["scan"]["max"] = 30;
  EXPECT_TRUE(diagnose(facts).summary.ends_with("-1 looks like an ignore label, but ignore_index is 36"));
}

// A notebook's folder of copies beside those of the classes: an output more would be trained on it.
TEST(AdviceNeed, AHiddenFolderIsNoClass) {
  const json counted = {
      {"count", 5}, {"of", "the number of the data set's classes"}, {"hidden", ".ipynb_checkpoints"}};
  for (const char* contract : {"nll_loss_forward.target", "gather.index"}) {
    const Finding finding = diagnose(
        facts_of(contract, 5, 5,
                 {{"layer", layer("fc", "out_features", 5)}, {"table", "labels"}, {"counted", counted}}));
    EXPECT_EQ(finding.cause, Cause::kLabelOutOfRange) << contract;
    EXPECT_NE(finding.summary.find(
                  "; the hidden folder .ipynb_checkpoints is one of the data set's classes: without "
                  "it there are 5"),
              std::string::npos)
        << finding.summary;
    EXPECT_EQ(finding.fix.front(),
              "if it is no class, remove the folder .ipynb_checkpoints: folders are numbered by the "
              "alphabet, hidden "
              "ones first, so the classes behind it are one too high");
    EXPECT_FALSE(says(finding, "outputs")) << all(finding);
    EXPECT_FALSE(says(finding, "record")) << all(finding);
  }
}

TEST(AdviceData, ATableOfAModelThatIsUsedIsNotMadeLargerAlone) {
  json ids = facts_of("embedding.indices", 12, 12, {{"layer", layer("users", "num_embeddings", 12)}});
  EXPECT_TRUE(says(diagnose(ids), "which of the two is meant: `users` has 12 rows")) << all(diagnose(ids));
  ids["no_grad"] = true;
  EXPECT_FALSE(says(diagnose(ids), "if there are meant to be more")) << all(diagnose(ids));
  EXPECT_TRUE(says(diagnose(ids),
                   "as a row that it has not seen holds random numbers: look at what the "
                   "model was made and trained with"))
      << all(diagnose(ids));
}

TEST(AdviceData, OneLessADistanceIsNoProbability) {
  json facts = facts_of("binary_cross_entropy.self", 0, 1, {{"squashed", "difference"}});
  facts["scan"].merge_patch({{"value", -0.4}, {"min", -0.4}, {"max", 0.99}, {"is_float", true}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with(": a difference may lie below 0")) << finding.summary;
  EXPECT_TRUE(says(finding, "torch.exp(-distance)")) << all(finding);
  EXPECT_FALSE(says(finding, "sigmoid")) << all(finding);
}

// Two cut by the table's own setting: to make that larger would let them grow as well.
TEST(AdviceData, ALimitThatGoesByTheTableIsWhatToLookAt) {
  const auto call = [](json limit) {
    return diagnose(facts_of("embedding.indices", 70, 64,
                             {{"table", "position"},
                              {"position",
                               {{"rows", 64},
                                {"offset", 0},
                                {"length", 72},
                                {"name", "wpe"},
                                {"setting", "n_positions"},
                                {"value", 64},
                                {"limit", std::move(limit)}}},
                              {"tensor", {{"shape", {1, 72}}}}}));
  };
  const Finding more =
      call({{"text", "max_length=config.n_positions + 8"}, {"line", 41}, {"more", true}, {"follows", true}});
  EXPECT_EQ(more.fix.front(),
            "look at `max_length=config.n_positions + 8` (line 41): it goes by n_positions and lets more "
            "through than the 64 that fit; a larger table would move it along")
      << all(more);
  EXPECT_FALSE(says(more, "n_positions=72")) << all(more);
  const Finding kept = call({{"text", "max_length=config.n_positions"}, {"line", 41}, {"follows", true}});
  EXPECT_EQ(
      kept.fix.front(),
      "`max_length=config.n_positions` (line 41) keeps to the table: look for what does not pass it, or "
      "grows behind it")
      << all(kept);
  EXPECT_TRUE(says(kept, "n_positions=72 at least")) << all(kept);
}

TEST(AdviceData, ACalendarCountsFromOne) {
  json facts = facts_of("nll_loss_forward.target", 7, 7, {{"scan", {{"total", 14}, {"min", 1}, {"max", 7}}}});
  facts["layer"] = layer("head", "out_features", 7);
  EXPECT_TRUE(says(diagnose(facts), "of the two is meant")) << all(diagnose(facts));
  facts["calendar"] = {{"text", "day.isoweekday()"}, {"file", "a.py"}, {"line", 6}, {"last", 7}};
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("; `day.isoweekday()` counts from 1 to 7")) << all(finding);
  EXPECT_EQ(
      finding.fix.front(),
      "if they are `day.isoweekday()` (a.py:6): take 1 off there, so that all of them move down by one");
  EXPECT_FALSE(says(finding, "more than 7")) << all(finding);
  json ids = facts_of("embedding.indices", 4, 4, {{"scan", {{"total", 48}, {"min", 0}, {"max", 4}}}});
  ids["calendar"] = {{"text", "d.month"}, {"file", "a.py"}, {"line", 6}, {"last", 12}, {"by", 3}};
  EXPECT_EQ(
      diagnose(ids).fix.front(),
      "if they are `d.month // 3` (a.py:6), that is 4 for the last: take 1 off before, (d.month - 1) // 3, "
      "or all groups begin one too late");
}

}  // namespace
}  // namespace trapline::diagnose
