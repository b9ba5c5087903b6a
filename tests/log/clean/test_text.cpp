#include <gtest/gtest.h>

#include "log/clean/text.hpp"

namespace trapline {
namespace {

std::string cleaned(std::string_view raw, bool* replaced = nullptr) {
  std::string scratch;
  bool ignored = false;
  return std::string(clean_text(raw, scratch, replaced == nullptr ? ignored : *replaced));
}

TEST(CleanText, EscapeSequencesGo) {
  EXPECT_EQ(cleaned("\x1b[1;31mRuntimeError\x1b[0m: x"), "RuntimeError: x");
  EXPECT_EQ(cleaned("\x1b]0;title\aRuntimeError"), "RuntimeError");
  EXPECT_EQ(cleaned("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ text"), "link text");
  EXPECT_EQ(cleaned("\x1b(BRuntimeError\x1b[K"), "RuntimeError");
  EXPECT_EQ(cleaned("^[[31mRuntimeError^[[0m: x"), "RuntimeError: x");
  EXPECT_EQ(cleaned("\x1b]never ended"), "never ended");
  EXPECT_EQ(cleaned("x\x1b"), "x");
}

// A recorded terminal moves the cursor where the text had a blank.
TEST(CleanText, AStepForwardOfTheCursorIsABlank) {
  EXPECT_EQ(cleaned("CUDA\x1b[1Cerror:\x1b[Cx\x1b[3Cy"), "CUDA error: x   y");
  EXPECT_EQ(cleaned("^[[2Cx\x1b[99999999Cy\x1b[;Cz"), "  xyz");
}

TEST(CleanText, NothingOddIsMissedWhereverItStands) {
  for (std::size_t before = 0; before < 100; ++before) {
    const std::string start = std::string(before, 'a') + " error";
    EXPECT_EQ(cleaned(start + "\x1b[31m red"), start + " red") << before;
    EXPECT_EQ(cleaned(start + "\x7f."), start + ".") << before;
    EXPECT_EQ(cleaned(start + "\xff."), start + "\uFFFD.") << before;
    EXPECT_EQ(cleaned(start + "\t."), start + "\t.") << before;
  }
}

TEST(CleanText, BytesThatAreNoTextAreReplacedOrGo) {
  bool replaced = false;
  EXPECT_EQ(cleaned("caf\xe9 x", &replaced), "caf\uFFFD x");
  EXPECT_TRUE(replaced);
  replaced = false;
  EXPECT_EQ(cleaned("caf\u00e9 \u65ad\u8a00 \U0001F525", &replaced), "caf\u00e9 \u65ad\u8a00 \U0001F525");
  EXPECT_FALSE(replaced);
  EXPECT_EQ(cleaned("\xed\xa0\x80x"), "\uFFFDx");                // a surrogate
  EXPECT_EQ(cleaned("\xc0\xaf\xf8x\xe2\x82"), "\uFFFDx\uFFFD");  // overlong, too high, cut
  EXPECT_EQ(cleaned(std::string_view("Run\0time\0", 9)), "Runtime");
  EXPECT_EQ(cleaned("no\u00a0break\u200b"), "no break");
  EXPECT_EQ(cleaned("ab\b\bcd"), "cd");
  EXPECT_EQ(cleaned("text\r\n"), "text");
  EXPECT_EQ(cleaned("text^M"), "text");
  EXPECT_EQ(cleaned("a\tb"), "a\tb");
}

}  // namespace
}  // namespace trapline
