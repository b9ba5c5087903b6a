// The sample in words, and its way through the JSON.
#include <gtest/gtest.h>

#include "report/json.hpp"
#include "report/sentences.hpp"

namespace trapline {
namespace {

Sample row(std::int64_t index) {
  Sample sample;
  sample.dataset_index = index;
  sample.batch = 3;
  sample.row = 0;
  return sample;
}

TEST(SampleText, NamesOfTheProgram) {
  Sample sample = row(5);
  sample.loader = "train_loader";
  sample.dataset = DataSet{"train_set", "Subset", 10};
  sample.base_index = 4;
  sample.base = DataSet{"dataset", "Masks", 12};
  sample.file = "data/imgs/s07.png";
  EXPECT_EQ(sample_text(sample), "train_set[5] = dataset[4] (batch 3, row 0), data/imgs/s07.png");
  sample.dataset->name.clear();
  EXPECT_EQ(sample_text(sample), "train_loader.dataset[5] = dataset[4] (batch 3, row 0), data/imgs/s07.png");
  sample.loader.clear();
  sample.base->name.clear();
  sample.file.clear();
  EXPECT_EQ(sample_text(sample),
            "sample 5 of the Subset of 10 = sample 4 of the Masks of 12 (batch 3, row 0)");
}

TEST(SampleText, WithoutNames) {
  EXPECT_EQ(sample_text(row(4711)), "data set index 4711 (batch 3, row 0)");
  Sample stream;
  stream.batch = 2;
  stream.row = 1;
  stream.key = "shard-7";
  EXPECT_EQ(sample_text(stream), "batch 2, row 1, \"shard-7\"");
}

TEST(SampleText, Candidates) {
  Sample sample;
  sample.batch = 3;
  sample.one_of = {3, 19, 22, 7};
  sample.of = 4;
  sample.dataset = DataSet{"train_set", "Subset", 10};
  EXPECT_EQ(sample_text(sample), "one of samples 3, 19, 22, 7 of train_set (batch 3)");
  sample.of = 28;
  sample.dataset->name.clear();
  EXPECT_EQ(sample_text(sample), "one of samples 3, 19, 22, 7 and 24 more of the Subset of 10 (batch 3)");
}

TEST(SampleText, ABatchThatIsJustInHand) {
  Sample sample;
  sample.batch = 3;
  sample.by = "hand";
  EXPECT_EQ(sample_text(sample), "batch 3, in hand at the error");
  sample.loader = "val_loader";
  sample.one_of = {12, 40};
  sample.of = 9;
  sample.dataset = DataSet{"val_set", "Subset", 50};
  EXPECT_EQ(sample_text(sample),
            "batch 3 of val_loader (samples 12, 40 and 7 more of val_set), in hand at the error");
  sample.one_of = {12};
  sample.of = 1;
  EXPECT_EQ(sample_text(sample), "batch 3 of val_loader (sample 12 of val_set), in hand at the error");
}

TEST(CountText, OfAnExpandedTensor) {
  Element element;
  element.index = {3, 0};
  element.bad = 1;
  element.total = 32;
  element.min = Scalar(std::int64_t{0});
  element.max = Scalar(std::int64_t{195});
  EXPECT_EQ(count_text(element), "1 of 32; min 0, max 195");
  EXPECT_EQ(count_text(element, {32, 1}), "1 of 32; min 0, max 195");
  EXPECT_EQ(count_text(element, {32, 64}), "1 of 32, each 64 times in the expanded tensor; min 0, max 195");
  EXPECT_EQ(count_text(element, {5, 7}), "1 of 32; min 0, max 195") << "no whole number of times";
  EXPECT_EQ(count_text(element, {2048}), "1 of 32; min 0, max 195") << "of another tensor";
  EXPECT_EQ(count_text(element, {std::int64_t{1} << 62, 8}), "1 of 32; min 0, max 195");
}

TEST(SampleText, HowSure) {
  Sample sample = row(5);
  sample.dataset = DataSet{"train_set", "Texts", 10};
  sample.by = "length";
  EXPECT_EQ(sample_text(sample), "train_set[5] (batch 3, row 0), the longest of its batch");
  sample.by = "column";
  sample.likely = true;
  EXPECT_EQ(sample_text(sample),
            "train_set[5] (batch 3, row 0), likely: as column 0 of the targets counts the images");
  sample.by = "loop";
  EXPECT_EQ(sample_text(sample), "train_set[5] (batch 3, row 0), likely: what the loop is at");
  sample.by = "record";
  EXPECT_EQ(sample_text(sample), "train_set[5] (batch 3, row 0), likely: the only record with this value");
  sample.by = "a word of a later version";
  EXPECT_EQ(sample_text(sample), "train_set[5] (batch 3, row 0), likely");
}

TEST(SampleText, AllOfItGoesThroughTheJson) {
  Report report;
  report.verdict = Verdict::kFault;
  Finding& finding = report.findings.emplace_back();
  finding.summary = "a finding";
  Sample sample = row(5);
  sample.loader = "loaders['val']";
  sample.dataset = DataSet{"val_set", "Subset", 10};
  sample.base_index = 4;
  sample.base = DataSet{"", "Masks", std::nullopt};
  sample.file = "a.png";
  sample.key = "k";
  sample.one_of = {1, 2};
  sample.of = 9;
  sample.by = "length";
  sample.likely = true;
  finding.sample = sample;
  const auto read = parse_report(to_json(report).dump());
  ASSERT_TRUE(read) << read.error().line();
  const Sample& back = read->findings.at(0).sample.value();
  EXPECT_EQ(sample_text(back), sample_text(sample));
  EXPECT_EQ(back.loader, "loaders['val']");
  EXPECT_EQ(back.dataset->name, "val_set");
  EXPECT_EQ(back.dataset->length, 10);
  EXPECT_EQ(back.base->type, "Masks");
  EXPECT_FALSE(back.base->length);
  EXPECT_EQ(back.base_index, 4);
  EXPECT_EQ(back.one_of, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(back.of, 9);
  EXPECT_EQ(back.by, "length");
  EXPECT_TRUE(back.likely);
}

TEST(ProgressText, NamesWhatIsKnown) {
  const auto line = [](const Progress& progress) {
    return std::string(progress_label(progress)) + ": " + progress_text(progress);
  };
  Progress progress{1200, Scalar(2.4), "validation", "bert-tiny", "Trainer"};
  EXPECT_EQ(line(progress), "step: 1200, epoch 2.4, validation (Trainer, bert-tiny)");
  progress.step.reset();
  EXPECT_EQ(line(progress), "epoch: 2.4, validation (Trainer, bert-tiny)");
  progress.epoch.reset();
  progress.trainer.clear();
  EXPECT_EQ(line(progress), "phase: validation (bert-tiny)");
  progress.phase.clear();
  EXPECT_EQ(line(progress), "model: bert-tiny");
  EXPECT_EQ(line({0, Scalar(std::int64_t{0})}), "step: 0, epoch 0");
  EXPECT_EQ(progress_text({}), "");
}

}  // namespace
}  // namespace trapline
