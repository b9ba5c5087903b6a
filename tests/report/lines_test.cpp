#include "report/lines.hpp"

#include <gtest/gtest.h>

#include "report/utf8.hpp"

namespace trapline {
namespace {

using Texts = std::vector<std::string>;

TEST(Wrap, BreaksBetweenWords) {
  EXPECT_EQ(wrap("one two three four", 9, 9), (Texts{"one two", "three", "four"}));
  EXPECT_EQ(wrap("fits", 9, 9), Texts{"fits"});
  EXPECT_EQ(wrap("", 9, 9), Texts{""});
  EXPECT_EQ(wrap("  two   spaces ", 20, 9), Texts{"two spaces"});
}

TEST(Wrap, BreaksALongWordInside) {
  EXPECT_EQ(wrap("abcdefghijklmnop", 10, 9), (Texts{"abcdefghij", "klmnop"}));
  EXPECT_EQ(wrap("ab cdefghijklmnopq", 10, 9), (Texts{"ab", "cdefghijkl", "mnopq"}));
}

TEST(Wrap, RangesShapesAndNamesStayWhole) {
  EXPECT_EQ(wrap("must lie in [0, 195)", 16, 9), (Texts{"must lie in", "[0, 195)"}));
  EXPECT_EQ(wrap("input [64, 1, 8], and", 12, 9), (Texts{"input", "[64, 1, 8],", "and"}));
  EXPECT_EQ(wrap("write `trapline run -- x` here", 20, 9), (Texts{"write", "`trapline run -- x`", "here"}));
}

TEST(Wrap, WhatIsTooLongToStayWholeBreaksAsUsual) {
  EXPECT_EQ(wrap("a [1, 2, 3, 4, 5] b", 10, 9), (Texts{"a [1, 2,", "3, 4, 5] b"}));
  EXPECT_EQ(wrap("an [open bracket", 12, 9), (Texts{"an [open", "bracket"}));
  EXPECT_EQ(wrap(std::string(100'000, '[') + " x", 40, 2).size(), 2U);  // and in time
}

TEST(Wrap, APathBreaksAfterAFolder) {
  EXPECT_EQ(wrap("/home/user/job/train.py:41", 18, 9), (Texts{"/home/user/job/", "train.py:41"}));
}

TEST(Wrap, CountsColumnsNotBytes) {
  EXPECT_EQ(wrap("\u640d\u5931\u640d\u5931\u640d", 8, 9), (Texts{"\u640d\u5931\u640d\u5931", "\u640d"}));
}

TEST(Wrap, SaysThatSomethingIsMissing) {
  const Texts lines = wrap("one two three four five six", 10, 2);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[1].ends_with("...")) << lines[1];
  EXPECT_EQ(wrap("one two three", 10, 2), (Texts{"one two", "three"}));
  const Texts cut = wrap(std::string(100, 'x'), 10, 2);
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(cut[1], "xxxxxx ...");
  EXPECT_EQ(wrap(std::string(20, 'x'), 10, 2), (Texts{"xxxxxxxxxx", "xxxxxxxxxx"}));
}

TEST(Shorten, KeepsTheBeginning) {
  Style style;
  EXPECT_EQ(shorten("abcdef", 6, style), "abcdef");
  EXPECT_EQ(shorten("abcdefg", 6, style), "abcde\u2026");
  style.unicode = false;
  EXPECT_EQ(shorten("abcdefg", 6, style), "abc...");
}

TEST(Render, PaintsOnlyWhenAsked) {
  Style style;
  const std::vector<Line> lines = {{{"error", Paint::kError}, {" x  ", Paint::kPlain}}};
  EXPECT_EQ(render(lines, style), "error x\n");
  style.color = true;
  EXPECT_EQ(render(lines, style), "\x1b[1;31merror\x1b[0m x\n");
}

TEST(Render, TheGutterCanBeReadOnBlack) {
  Style style;
  style.color = true;
  EXPECT_EQ(render({{{"|", Paint::kGutter}}}, style), "\x1b[1;94m|\x1b[0m\n");
}

}  // namespace
}  // namespace trapline
