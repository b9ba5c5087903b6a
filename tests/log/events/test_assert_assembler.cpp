// Assertions whose lines were damaged on their way, without what an event stream makes of them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "log/events/assert_assembler.hpp"

namespace trapline {
namespace {

struct Assembled {
  std::string file, condition;
  std::int64_t thread;
  bool in_pieces, end_missing;
  bool operator==(const Assembled&) const = default;
};

// Feeds lines and keeps what comes out of them, and at the end.
class Assembling {
 public:
  Assembling& line(std::string_view text, std::int64_t skipped = 0) {
    number_ += 1 + skipped;
    take(assembler_.line(text, number_, matcher_.line(text, long_before_)));
    took_ = assembler_.took_line();
    long_before_ = text.size() >= kMinWrap;
    return *this;
  }
  const std::vector<Assembled>& so_far() const { return all_; }
  bool took() const { return took_; }
  std::vector<Assembled> finish() {
    take(assembler_.finish());
    return all_;
  }

 private:
  void take(std::span<const FoundAssert> found) {
    for (const FoundAssert& one : found) {
      all_.push_back({std::string(one.line.file), std::string(one.line.condition), one.line.thread.x,
                      one.in_pieces, one.end_missing});
    }
  }

  MessageMatcher matcher_;
  AssertAssembler assembler_;
  std::vector<Assembled> all_;
  std::int64_t number_ = 0;
  bool long_before_ = false, took_ = false;
};

using All = std::vector<Assembled>;
constexpr std::string_view kWhole =
    "../aten/src/ATen/native/cuda/Indexing.cu:1237: indexSelectSmallIndex: block: [3,0,0], thread: [64,0,0] "
    "Assertion `srcIndex < srcSelectDimSize` failed.";
const Assembled kAssert{"Indexing.cu", "srcIndex < srcSelectDimSize", 64, false, false};

TEST(AssertAssembler, AWholeLine) {
  Assembling a;
  EXPECT_EQ(a.line(kWhole).so_far(), All{kAssert});
  EXPECT_TRUE(a.took());
  a.line("RuntimeError: CUDA error: device-side assert triggered");
  EXPECT_FALSE(a.took());
  EXPECT_EQ(a.finish(), All{kAssert});
}

TEST(AssertAssembler, TheConditionOnTheNextLine) {
  const std::size_t cut = kWhole.find("Index < src");
  Assembling a;
  EXPECT_EQ(a.line(kWhole.substr(0, cut)).so_far(), All{});
  Assembled pieced = kAssert;
  pieced.in_pieces = true;
  EXPECT_EQ(a.line(kWhole.substr(cut)).so_far(), All{pieced});
  EXPECT_TRUE(a.took());
}

TEST(AssertAssembler, TheNameOfTheFileOnTheLineBefore) {
  const std::size_t cut = kWhole.find("SmallIndex");
  Assembling a;
  a.line(kWhole.substr(0, cut)).line(kWhole.substr(cut));
  EXPECT_EQ(a.so_far(), All{kAssert});
}

TEST(AssertAssembler, LinesInBetweenEndAnOpenOne) {
  const std::size_t cut = kWhole.find("Index < src");
  Assembling a;
  a.line(kWhole.substr(0, cut)).line(kWhole.substr(cut), 3);
  for (const Assembled& one : a.so_far()) EXPECT_FALSE(one.in_pieces);
}

TEST(AssertAssembler, AnEndThatNeverCameIsALastResort) {
  Assembling a;
  a.line("my_kernel.cu:12: my_kernel: block: [0,0,0], thread: [3,0,0] Assertion `n >").line("step 4");
  EXPECT_EQ(a.so_far(), All{});
  const All all = a.finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].file, "my_kernel.cu");
  EXPECT_TRUE(all[0].end_missing);
}

TEST(AssertAssembler, OnlyThePlaceAndTheConditionAreLegible) {
  Assembling a;
  a.line("Indexing.cu indexSelectSmallIndex").line("x srcIndex < srcSelectDimSize x");
  EXPECT_EQ(a.so_far(), (All{{"Indexing.cu", "srcIndex < srcSelectDimSize", 0, false, false}}));
}

TEST(AssertAssembler, AConditionAloneIsSourceCode) {
  Assembling a;
  a.line("    srcIndex < srcSelectDimSize").line("CUDA_KERNEL_LOOP(i, n)");
  EXPECT_EQ(a.finish(), All{});
}

// The host's own check says it in the same words.
TEST(AssertAssembler, AHostFailureIsNotAnAssertion) {
  Assembling a;
  a.line(
      "RuntimeError: Assertion `cur_target >= 0 && cur_target < n_classes' failed.  at "
      "/pytorch/aten/src/THNN/generic/ClassNLLCriterion.c:97");
  EXPECT_EQ(a.finish(), All{});
}

}  // namespace
}  // namespace trapline
