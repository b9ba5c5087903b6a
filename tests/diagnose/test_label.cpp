// The words about labels: for each hint the exact summary and the first fix.
#include <gtest/gtest.h>

#include "violation_facts.hpp"

namespace trapline::diagnose {
namespace {

TEST(DiagnoseLabel, OneOutputTooFew) {
  const ViolationFacts facts =
      label(195, 195)
          .layer("fc.5", "Linear", "out_features")
          .with("seen", {{"min", 0}, {"max", 195}, {"count", 2048}, {"source", "dataset"}, {"kinds", 196}});
  expect(facts, Cause::kNumClassesMismatch,
         "cross_entropy: target[3] is 195, but `fc.5` has 195 outputs: valid labels are [0, 195)",
         "if there are meant to be more than 195 classes: change `fc.5` to Linear(..., out_features=196): "
         "labels go to 195 in the whole data set (2048 labels)");
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.layer->needed, 196);
  EXPECT_EQ(finding.also, std::vector<Cause>{Cause::kLabelOutOfRange});
  EXPECT_EQ(finding.fix.size(), 2U) << "0 is known to be a label: no word about counting from 1";
  EXPECT_EQ(finding.fix.back(), "if not, look at where the label is made: 1 of 32 is outside [0, 195)");
}

TEST(DiagnoseLabel, AClassThatHardlyARecordHasIsNone) {
  const auto cause = [](int beyond) {
    const ViolationFacts facts = label(195, 195).with("seen", {{"min", 0},
                                                               {"max", 195},
                                                               {"count", 2048},
                                                               {"source", "dataset"},
                                                               {"kinds", 196},
                                                               {"beyond", beyond}});
    return diagnose(facts).cause;
  };
  EXPECT_EQ(cause(1), Cause::kLabelOutOfRange);
  EXPECT_EQ(cause(2), Cause::kLabelOutOfRange);
  EXPECT_EQ(cause(3), Cause::kNumClassesMismatch);  // a class has 10.5 of 2048, evenly spread
}

TEST(DiagnoseLabel, TheFixIsTheWholeCallWhenItIsKnown) {
  const ViolationFacts facts =
      label(195, 195)
          .with("layer", {{"name", "fc.5"},
                          {"type", "Linear"},
                          {"attribute", "out_features"},
                          {"value", 195},
                          {"arguments", "in_features=300, out_features=195"}})
          .with("seen", {{"min", 0}, {"max", 195}, {"count", 2048}, {"source", "dataset"}, {"kinds", 196}});
  EXPECT_EQ(diagnose(facts).fix.front(),
            "if there are meant to be more than 195 classes: change `fc.5` to Linear(in_features=300, "
            "out_features=196): labels go to 195 in the whole data set (2048 labels)");
}

TEST(DiagnoseLabel, TheLabelsOfAnotherHead) {
  const ViolationFacts facts = label(5, 4)
                                   .layer("heads.body", "Linear", "out_features")
                                   .with("variable", {{"name", "labels[\"colour\"]"}, {"index", {3}}})
                                   .with("namesake", {{"name", "heads.colour"}, {"places", 8}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with(
      "; these are `labels[\"colour\"]`, and it is `heads.colour` that has 8 places"))
      << finding.summary;
  EXPECT_EQ(finding.fix,
            std::vector<std::string>{"`labels[\"colour\"]` went to `heads.body` and not to `heads.colour`: "
                                     "look at how the two are paired; zip() pairs by order, not by name"});
}

TEST(DiagnoseLabel, AsManyAsAnotherHeadHas) {
  const ViolationFacts facts = label(68, 11)
                                   .scan("max", 162)
                                   .scan("bad", 31)
                                   .layer("vowel", "Linear", "out_features")
                                   .with("other_head", {{"name", "root"}, {"places", 168}});
  const Finding finding = diagnose(facts);
  EXPECT_TRUE(finding.summary.ends_with("; `root` has 168 outputs, as many as these need"))
      << finding.summary;
  EXPECT_EQ(
      finding.fix.at(0),
      "look at whether labels and outputs are paired in the same order: `vowel` has 11, and as many as these "
      "need has `root`: a tuple, a list and zip() pair by order, not by name");
  for (const std::string& line : finding.fix) EXPECT_EQ(line.find("more outputs"), std::string::npos) << line;
}

TEST(DiagnoseLabel, OneFarBeyondAmongSoManyIsNoClass) {
  const auto offers = [](std::int64_t count) {
    const ViolationFacts facts =
        label(109, 84)
            .scan("max", 109)
            .layer("net.6", "Linear", "out_features")
            .with("seen", {{"min", 2}, {"max", 109}, {"count", count}, {"source", "calls"}});
    const auto fix = diagnose(facts).fix;
    return std::ranges::any_of(
        fix, [](const std::string& line) { return line.find("of the two is meant") != line.npos; });
  };
  EXPECT_TRUE(offers(200));
  EXPECT_FALSE(offers(1280));  // 26 classes more would have shown some 300
}

TEST(DiagnoseLabel, OneBased) {
  const ViolationFacts facts =
      label(10, 10)
          .scan("min", 1)
          .layer("head.2", "Linear", "out_features")
          .with("seen", {{"min", 1}, {"max", 10}, {"count", 2048}, {"source", "dataset"}});
  expect(facts, Cause::kLabelOutOfRange,
         "cross_entropy: target[3] is 10, but `head.2` has 10 outputs: valid labels are [0, 10); labels look "
         "1-based: they run from 1 to 10 in the whole data set (2048 labels)",
         "see first what has number 0: a list of names that numbers the labels may begin with one that is no "
         "class "
         "(a hidden folder, a header, a background)");
  EXPECT_EQ(diagnose(facts).fix.at(1),
            "if nothing has it, they are counted from 1: labels = labels - 1, best once in the data set");
  EXPECT_FALSE(diagnose(facts).layer->needed) << "the layer is right";
}

// Nothing tells whether the label is wrong or the model is too small.
TEST(DiagnoseLabel, OneOfManyLabelsIsBeyond) {
  expect(label(195, 195).scan("min", 4), Cause::kLabelOutOfRange,
         "cross_entropy: target[3] is 195, but the input has 195 classes: valid labels are [0, 195)",
         "if 195 is not a class, correct it where it is made: in its record, or by the code that numbers the "
         "labels: 1 of 32 is outside [0, 195)");
  const Finding finding = diagnose(label(195, 195).scan("min", 4));
  EXPECT_EQ(finding.also, std::vector<Cause>{Cause::kNumClassesMismatch});
  EXPECT_EQ(finding.fix.at(1),
            "see which of the two is meant: there are 195 classes, and 195 is the highest of 32 labels "
            "seen");
  EXPECT_EQ(finding.fix.size(), 2U) << "4 to 195 says nothing of where labels begin";
  EXPECT_EQ(diagnose(label(195, 195).scan("min", 1)).fix.size(), 2U) << "nor do 32 of 195 without a 0";
}

TEST(DiagnoseLabel, AllLabelsAreBeyond) {
  const Finding finding =
      diagnose(label(4, 3).scan("min", 3).scan("bad", 32).with("values", {{3, 9}, {4, 9}, {5, 14}}));
  EXPECT_EQ(finding.cause, Cause::kLabelOutOfRange);
  EXPECT_TRUE(
      finding.fix.front().starts_with("all 32 are outside [0, 3): look at where the labels are numbered"))
      << finding.fix.front();
}

TEST(DiagnoseLabel, SomeLabelsAreBeyond) {
  const Finding finding = diagnose(label(195, 195).scan("min", 1).scan("bad", 3));
  EXPECT_EQ(finding.cause, Cause::kLabelOutOfRange);
  EXPECT_EQ(finding.fix.front(), "look at where the label is made: 3 of 32 are outside [0, 195)");
  EXPECT_EQ(finding.fix.size(), 2U);
}

TEST(DiagnoseLabel, IgnoreLabels) {
  expect(label(-1, 5).below(), Cause::kLabelOutOfRange,
         "cross_entropy: target[3] is -1, but the input has 5 classes: valid labels are [0, 5); -1 looks "
         "like an "
         "ignore label, but ignore_index is -100",
         "if a look-up that found nothing gave it (str.find, dict.get(key, -1), a pandas category), look at "
         "where the labels are made: correct the name that it did not find, add it to the classes, or leave "
         "that record out");
  expect(label(255, 6), Cause::kLabelOutOfRange,
         "cross_entropy: target[3] is 255, but the input has 6 classes: valid labels are [0, 6); 255 looks "
         "like an "
         "ignore label, but ignore_index is -100",
         "if 255 marks what is not to count: F.cross_entropy(..., ignore_index=255) or "
         "nn.CrossEntropyLoss(ignore_index=255)");
  expect(label(-100, 6).below().scan("also", 0), Cause::kLabelOutOfRange,
         "cross_entropy: target[3] is -100, but the input has 6 classes: valid labels are [0, 6); -100 is "
         "PyTorch's "
         "default ignore label, but this call has ignore_index=0",
         "one number has to mark what is not to count: ignore_index=-100, if 0 is a class or does not occur; "
         "else "
         "write 0 where the labels get -100");
  expect(label(255, 255), Cause::kLabelOutOfRange,
         "cross_entropy: target[3] is 255, but the input has 255 classes: valid labels are [0, 255)",
         "if 255 is not a class, correct it where it is made: in its record, or by the code that numbers the "
         "labels: 1 of 32 is outside [0, 255)");
}

TEST(DiagnoseLabel, BrokenRecord) {
  expect(label(37, 12).with("sample", {{"dataset_index", 77}}), Cause::kLabelOutOfRange,
         "cross_entropy: target[3] is 37, but the input has 12 classes: valid labels are [0, 12)",
         "look at sample 77 of the data set");
}

TEST(DiagnoseLabel, TheSampleIsPrintedThroughANameThatTheProgramHas) {
  const auto first = [](json sample) {
    return diagnose(label(37, 12).with("sample", std::move(sample))).fix.at(0);
  };
  const json set = {{"name", "train_set"}, {"type", "Subset"}, {"length", 100}};
  const json nameless = {{"type", "Subset"}, {"length", 100}};
  EXPECT_EQ(first({{"dataset_index", 77}, {"loader", "train_loader"}, {"dataset", set}}),
            "look at sample 77: print(train_loader.dataset[77])");
  EXPECT_EQ(first({{"dataset_index", 77}, {"dataset", set}}), "look at sample 77: print(train_set[77])");
  EXPECT_EQ(first({{"dataset_index", 77}, {"dataset", nameless}}),
            "look at sample 77 of the Subset of 100 that the DataLoader reads");
  EXPECT_EQ(first({{"one_of", {3, 19, 22}}, {"of", 3}, {"dataset", set}}),
            "look at samples 3, 19, 22: print([train_set[i] for i in [3, 19, 22]])");
  EXPECT_EQ(first({{"one_of", {3, 19, 22}}, {"of", 9}, {"dataset", set}}).find("look at"), std::string::npos);
}

TEST(DiagnoseLabel, ManyClassesBeyond) {
  const ViolationFacts facts = label(37, 12).scan("bad", 20).with("values", {{37, 1}, {20, 3}, {14, 2}});
  EXPECT_EQ(diagnose(facts).cause, Cause::kLabelOutOfRange) << "one batch: all of them may be wrong";
  EXPECT_EQ(diagnose(facts).also, std::vector<Cause>{Cause::kNumClassesMismatch});
}

TEST(DiagnoseLabel, Garbage) {
  expect(
      label(140737488355328, 12), Cause::kLabelOutOfRange,
      "cross_entropy: target[3] is 140737488355328, which is not a plausible label: memory that was "
      "never written or is of another dtype, or a raw number (a hash, a time, a key)",
      "find where `target` is allocated: torch.empty(...) and np.empty(...) hold garbage until written; use "
      "torch.zeros(...)");
}

}  // namespace
}  // namespace trapline::diagnose
