#include "catalogue/wordings.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "catalogue/fold.hpp"

namespace trapline {
namespace {

TEST(Wordings, EverySampleFindsItsRow) {
  for (const WordingRow& row : wording_rows()) {
    const WordingRow* found = find_wording(row.sample);
    ASSERT_NE(found, nullptr) << row.id;
    EXPECT_EQ(found->id, row.id) << row.sample;
  }
}

TEST(Wordings, IdsAndPhrasesAreUnique) {
  std::set<std::string_view> ids;
  std::set<std::string> phrases;
  for (const WordingRow& row : wording_rows()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_TRUE(phrases.insert(fold(row.phrase)).second) << row.id;
  }
}

// What a row does goes with what it is: anything else would be dead words in the table.
TEST(Wordings, EveryRowDoesSomething) {
  for (const WordingRow& row : wording_rows()) {
    const bool is_peer = row.kind == WordingKind::kPeer;
    EXPECT_EQ(row.effect.complaint != Complaint::kNone, is_peer) << row.id;
    EXPECT_EQ(!row.effect.failure.empty(), is_peer) << row.id;
    if (row.kind == WordingKind::kEvidence) {
      EXPECT_FALSE(row.effect.hints.empty()) << row.id;
    }
    if (row.effect.refine != Refine::kNothing) {
      EXPECT_TRUE(row.kind == WordingKind::kHostValue || row.kind == WordingKind::kContext) << row.id;
    }
  }
}

TEST(Wordings, WhatALineSaysOfTheProgramIsInItsRow) {
  EXPECT_EQ(
      find_wording("     Epoch   gpu_mem       box       obj       cls    labels  img_size")->effect.hints,
      Hints(Hint::kDetection));
  EXPECT_EQ(find_wording("epoch 24 iter 625: loss nan")->effect.hints, Hints(Hint::kNan));
  EXPECT_EQ(find_wording("DeepEP timeout for dispatch, rank 3, thread 0")->effect.failure, "DeepEP time-out");
}

TEST(Wordings, NumbersOfAllReleases) {
  EXPECT_EQ(find_cuda_error(59)->kind, WordingKind::kDeviceAssert);
  EXPECT_EQ(find_cuda_error(710)->kind, WordingKind::kDeviceAssert);
  EXPECT_EQ(find_cuda_error(700)->cause, Cause::kIllegalMemoryAccess);
  EXPECT_EQ(find_cuda_error(716)->cause, Cause::kIllegalMemoryAccess);
  EXPECT_EQ(find_cuda_error(719)->cause, Cause::kHardwareOrDriver);
  EXPECT_EQ(find_cuda_error(209)->cause, Cause::kArchMismatch);
  EXPECT_EQ(find_cuda_error(222)->cause, Cause::kArchMismatch);
  EXPECT_EQ(find_cuda_error(2)->cause, Cause::kOutOfMemory);
  EXPECT_EQ(find_cuda_error(702)->cause, Cause::kHardwareOrDriver);
  EXPECT_EQ(find_cuda_error(999)->cause, Cause::kHardwareOrDriver);
  EXPECT_EQ(find_cuda_error(4), nullptr);  // two meanings
}

TEST(Wordings, AdviceIsNoEvidence) {
  const WordingRow* row = find_wording("Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->kind, WordingKind::kHint);
}

TEST(Wordings, NothingInOrdinaryText) {
  for (const std::string_view text : {"Epoch 3/10: loss 0.41, accuracy 0.87",
                                      "device-side assertions are off", "saved checkpoint-500", ""}) {
    EXPECT_EQ(find_wording(text), nullptr) << text;
  }
}

// Each of these was a rule of its own once; folding makes them one.
TEST(Fold, WhatCopyingDoesToText) {
  const std::string plain = fold("RuntimeError: CUDA error: device-side assert triggered");
  EXPECT_EQ(fold("RuntimeError : CUDA error : device - side assert triggered"), plain);
  EXPECT_EQ(fold("**RuntimeError:** `CUDA error: device-side assert triggered`"), plain);
  EXPECT_EQ(fold("RuntimeErr0r: CUDA err0r: devlce-s1de assert tr1ggered"), plain);
  EXPECT_EQ(fold("Runti\\nmeError: CUDA error: device-side as\\nsert triggered"), plain);
  EXPECT_EQ(fold("RuntirneError: CUDA error: device-side assert triggered"), plain);
}

TEST(Phrases, OverlapsAndSuffixes) {
  Phrases phrases;
  phrases.add("abcd", 0);
  phrases.add("bc", 1);
  phrases.add("cdx", 2);
  phrases.build();
  std::vector<std::uint32_t> found;
  Phrases::State state = 0;
  for (const char c : std::string_view("zabcdx")) {
    state = phrases.step(state, c);
    if (phrases.ends(state)) phrases.each(state, [&](std::uint32_t id) { found.push_back(id); });
  }
  EXPECT_EQ(found, (std::vector<std::uint32_t>{1, 0, 2}));
}

TEST(Phrases, OnePhraseMayStandForSeveral) {
  Phrases phrases;
  phrases.add("ab", 7);
  phrases.add("b", 5);
  phrases.add("ab", 3);
  phrases.add("ab", 9);
  phrases.build();
  std::vector<std::uint32_t> found;
  const Phrases::State state = phrases.step(phrases.step(0, 'a'), 'b');
  phrases.each(state, [&](std::uint32_t id) { found.push_back(id); });
  EXPECT_EQ(found, (std::vector<std::uint32_t>{7, 3, 9, 5}));
}

TEST(Phrases, MoreThanItCanCountAreRefused) {
  Phrases phrases;
  std::string phrase = "aaaaaaaa";
  EXPECT_THROW(
      while (true) {
        phrases.add(phrase, 0);
        for (std::size_t k = 0; ++phrase[k] > 'z'; ++k) phrase[k] = 'a';
      },
      std::length_error);
}

TEST(Phrases, AnyByteIsTaken) {
  const CataloguePhrases& all = catalogue_phrases();
  Phrases::State state = 0;
  for (int c = -128; c < 128; ++c) state = all.automaton.step(state, static_cast<char>(c));
  EXPECT_FALSE(all.automaton.ends(0));
}

}  // namespace
}  // namespace trapline
