#include "catalogue/wordings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "catalogue/fold.hpp"
#include "catalogue/patterns.hpp"
#include "catalogue/statuses.hpp"
#include "catalogue/xids.hpp"

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

TEST(Patterns, EverySampleFindsItsRow) {
  for (const PatternRow& row : pattern_rows()) {
    const WordingRow* found = find_pattern(row.wording.sample);
    ASSERT_NE(found, nullptr) << row.wording.id;
    EXPECT_EQ(found->id, row.wording.id) << row.wording.sample;
  }
}

TEST(Patterns, EveryFormFindsANumberOfItsLibrary) {
  for (const NumberForm& form : number_forms()) {
    const WordingRow* found = find_pattern(form.sample);
    ASSERT_NE(found, nullptr) << form.sample;
    const bool is_its = std::any_of(status_rows().begin(), status_rows().end(), [&](const StatusRow& row) {
      return row.library == form.library && row.number != kNoNumber && row.meaning == found->effect.meaning;
    });
    EXPECT_TRUE(is_its) << form.sample;
    EXPECT_NE(found->effect.meaning, Meaning::kSomething) << form.sample;
  }
}

TEST(Patterns, WhatHealthyRunsPrintIsNone) {
  for (const std::string_view text :
       {"no CUDA errors (0)", "test error=2.31 on cuda", "loss on cuda 0: error 12.5", "GPU 0: MSE error 2",
        "error code 0 from cudaMalloc", "nccl error check every 5 steps", "cudaGetDeviceCount returned 0",
        "cuda0 returned 12 batches", "cudnn benchmark returned 3 algorithms", "client returned -5 rows",
        "CUDA error: 0", "valid error = 0.024 on cuda:0", "cuda:0 error rate: 35.2", "result: 123456"}) {
    EXPECT_EQ(find_pattern(text), nullptr) << text;
  }
}

TEST(Statuses, NumbersAndTextsAreUnique) {
  std::set<std::pair<Library, std::int64_t>> numbers;
  std::map<std::string_view, Meaning> texts;
  for (const StatusRow& row : status_rows()) {
    EXPECT_TRUE(row.number == kNoNumber || numbers.emplace(row.library, row.number).second)
        << row.name << row.text;
    if (row.text.empty()) continue;
    const auto [at, is_new] = texts.emplace(row.text, row.meaning);
    EXPECT_EQ(at->second, row.meaning) << "two meanings of \"" << row.text << '"';
  }
}

TEST(Xids, EachOnceAndInOrder) {
  int last = 0;
  for (const XidRow& row : xid_rows()) {
    EXPECT_LT(last, row.number);
    EXPECT_FALSE(row.meaning.empty()) << row.number;
    EXPECT_EQ(find_xid(row.number), &row);
    last = row.number;
  }
  EXPECT_EQ(find_xid(79)->tells, XidTells::kHardware);
  EXPECT_EQ(find_xid(31)->tells, XidTells::kMemoryAccess);
  EXPECT_EQ(find_xid(998), nullptr);
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
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 59)->meaning)->kind, WordingKind::kDeviceAssert);
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 710)->meaning)->kind, WordingKind::kDeviceAssert);
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 700)->meaning)->cause, Cause::kIllegalMemoryAccess);
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 716)->meaning)->cause, Cause::kIllegalMemoryAccess);
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 719)->meaning)->cause, Cause::kIllegalMemoryAccess);
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 209)->meaning)->cause, Cause::kArchMismatch);
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 222)->meaning)->cause, Cause::kArchMismatch);
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 2)->meaning)->cause, Cause::kOutOfMemory);
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 702)->meaning)->cause, Cause::kHardwareOrDriver);
  EXPECT_EQ(find_meaning(find_status(Library::kCuda, 999)->meaning)->cause, Cause::kHardwareOrDriver);
  EXPECT_EQ(find_status(Library::kCuda, 4), nullptr);  // two meanings
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
