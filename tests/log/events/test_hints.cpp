#include <gtest/gtest.h>

#include "log/events/hints.hpp"

namespace trapline {
namespace {

TEST(Hints, WhatLinesSayOfTheProgram) {
  EXPECT_EQ(hints_in("CUDA_LAUNCH_BLOCKING=1 python train.py", -1), Hints(Hint::kBlockingLaunches));
  EXPECT_EQ(hints_in("For debugging consider passing CUDA_LAUNCH_BLOCKING=1.", -1), Hints());
  EXPECT_EQ(hints_in("logits torch.Size([4, 19, 512, 512])", -1), Hints(Hint::kSegmentation));
  EXPECT_EQ(hints_in("logits torch.Size([4, 19])", -1), Hints());
  EXPECT_EQ(hints_in("ValueError: label 7 is out of range", -1), Hints(Hint::kLabelsPrinted));
  EXPECT_EQ(hints_in("tokenizer.vocab_size 32000", -1), Hints(Hint::kVocabulary));
}

TEST(Hints, ABarOnTheLineOrTakenOffIt) {
  EXPECT_EQ(hints_in("  0%|    | 0/9 [00:00<?, ?it/s]", -1), Hints(Hint::kFirstBatch));
  EXPECT_EQ(hints_in("x", 0), Hints(Hint::kFirstBatch));
  EXPECT_EQ(hints_in("x", 5), Hints());
  EXPECT_EQ(hints_in("x", 6), Hints(Hint::kLaterBatch));
}

}  // namespace
}  // namespace trapline
