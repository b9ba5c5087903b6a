#include <gtest/gtest.h>

#include <string>

#include "log/clean/tidy.hpp"

namespace trapline {
namespace {

std::string tidied(std::string_view text) {
  std::string storage;
  return std::string(tidy(text, storage));
}

TEST(Tidy, EntitiesBecomeTheirCharacters) {
  EXPECT_EQ(tidied("a &lt; b &amp;&amp; c &gt;= &quot;d&#39;e&#x27;f&apos;g&#96;&nbsp;h"),
            "a < b && c >= \"d'e'f'g` h");
  EXPECT_EQ(tidied("&amp;lt; &amp;amp;#x27; &amp;amp;."), "< ' &.");  // a page that quotes a page
  EXPECT_EQ(tidied("a & b &unknown; R&D"), "a & b &unknown; R&D");
  EXPECT_EQ(tidied("\\u003c0 \\u0026\\u0027 x =3D 1"), "<0 &' x = 1");
}

TEST(Tidy, FullWidthBecomesAscii) {
  EXPECT_EQ(tidied("\uFF32\uFF55\uFF4EtimeError\uFF1A\u3000x"), "RuntimeError: x");
  EXPECT_EQ(tidied("\u65AD\u8A00"), "\u65AD\u8A00");
}

TEST(Tidy, ColoursThatLostTheirEscapeGo) {
  EXPECT_EQ(tidied("[01;31mRuntimeError[0m: x"), "RuntimeError: x");
  EXPECT_EQ(tidied("block: [31,0,0] x[31]"), "block: [31,0,0] x[31]");
}

TEST(Tidy, WhatStandsAroundALineGoes) {
  EXPECT_EQ(tidied("> > RuntimeError: x  "), "RuntimeError: x");
  EXPECT_EQ(tidied("**RuntimeError: x**"), "RuntimeError: x");
  EXPECT_EQ(tidied("`RuntimeError: x`"), "RuntimeError: x");
  EXPECT_EQ(tidied("\u2502 RuntimeError: x \u2502"), " RuntimeError: x");
  EXPECT_EQ(tidied("RuntimeError: x^M"), "RuntimeError: x");
  EXPECT_EQ(tidied("    loss.backward()"), "    loss.backward()");  // the indentation of a source line
}

}  // namespace
}  // namespace trapline
