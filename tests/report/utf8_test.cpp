#include "report/utf8.hpp"

#include <gtest/gtest.h>

namespace trapline {
namespace {

const std::string kBad = "\xef\xbf\xbd";

TEST(Utf8, ReplacesEachInvalidByte) {
  EXPECT_EQ(valid_utf8("plain \u00e9\u4e2d\U0001f525"), "plain \u00e9\u4e2d\U0001f525");
  EXPECT_EQ(valid_utf8("\xff"), kBad);
  EXPECT_EQ(valid_utf8("\xc0\xaf"), kBad + kBad);                        // overlong slash
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), kBad + kBad + kBad);             // surrogate
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), kBad + kBad + kBad + kBad);  // beyond U+10FFFF
  EXPECT_EQ(valid_utf8("a\xe4\xb8"), "a" + kBad + kBad);                 // cut short
  EXPECT_EQ(valid_utf8("\xe4(b"), kBad + "(b");                          // the next byte is its own character
}

TEST(Utf8, MeasuresColumns) {
  EXPECT_EQ(width_of("abc"), 3);
  EXPECT_EQ(width_of("e\u0301"), 1);
  EXPECT_EQ(width_of("\u640d\u5931"), 4);
  EXPECT_EQ(width_of("\U0001f525"), 2);
  EXPECT_EQ(width_of("\u00e9"), 1);
  EXPECT_EQ(width_of(""), 0);
}

TEST(Utf8, PrintableWritesOutWhatDrivesATerminal) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable("a\nb\rc\td"), "a\\nb\\rc d");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xc2\x9b"), "\\x9b");  // the 8-bit control sequence introducer
  EXPECT_EQ(printable("\u202e\u2066\ufeff"), "\\u202e\\u2066\\ufeff");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  EXPECT_EQ(printable("\u640d"), "\u640d");
}

TEST(Utf8, AsciiHasNoOtherBytes) {
  EXPECT_EQ(ascii("\u201cfc\u201d \u2026 \u2013 \u00e9 \U0001f525"), "\"fc\" ... - \\xe9 \\U0001f525");
  EXPECT_EQ(ascii("\xff"), "?");
}

TEST(Utf8, CutsBetweenCharacters) {
  EXPECT_EQ(cut_utf8("a\u00e9", 2), "a");
  EXPECT_EQ(cut_utf8("a\u00e9", 3), "a\u00e9");
  EXPECT_EQ(cut_utf8("\U0001f525", 3), "");
  EXPECT_EQ(cut_utf8("abc", 2), "ab");
}

}  // namespace
}  // namespace trapline
