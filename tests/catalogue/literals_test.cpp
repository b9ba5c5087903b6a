// Which literals a line must hold for an expression to match it.
#include "catalogue/literals.hpp"

#include <gtest/gtest.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {
namespace {

using Texts = std::vector<std::string>;

Texts of(std::string_view pattern) { return needed_literals(pattern, 4); }

TEST(Literals, TheLongestRunOfEachAlternative) {
  EXPECT_EQ(of(R"(\bInvalid buffer size: [\d.]+ GB)"), Texts{"invalid buffer size: "});
  EXPECT_EQ(of(R"(no device found|Driver (?:lost|gone) at 0x[0-9a-f]+)"),
            (Texts{"no device found", "driver "}));
  EXPECT_EQ(of(R"((?i)FAILED\.? to load)"), Texts{" to load"});
}

TEST(Literals, WhatMayBeMissingIsNone) {
  EXPECT_EQ(of("colou?r of it"), Texts{"r of it"});
  EXPECT_EQ(of("abcd*efgh"), Texts{"efgh"});
  EXPECT_EQ(of("abcde+fghi"), Texts{"abcde"});
  EXPECT_EQ(of("(?:prefix )?value"), Texts{"value"});
  EXPECT_EQ(of("(?:prefix ){0,2}value"), Texts{"value"});
  EXPECT_EQ(of("keep(?: this (?:one|other) text) here"), Texts{" this "});
}

TEST(Literals, AnAlternativeWithoutOneSpoilsAll) {
  EXPECT_TRUE(of(R"(\d+ errors|\w+)").empty());
  EXPECT_TRUE(of("(?:left|right)").empty());
  EXPECT_TRUE(of("").empty());
}

TEST(Literals, EscapesClassesAndBraces) {
  EXPECT_EQ(of(R"([)\]|x]marks\|here)"), Texts{"marks|here"});
  EXPECT_EQ(of(R"(\x{e2}\x41 value\.cu:\d)"), Texts{" value.cu:"});
  EXPECT_EQ(of(R"(a\{b {literal})"), Texts{"a{b {literal}"});
  EXPECT_EQ(of("\xe5\xb7\xb2 killed"), Texts{" killed"});
}

// Whatever matches has one of them.
TEST(Literals, WhatMatchesHoldsOne) {
  struct Case {
    const char *pattern, *line;
  };
  for (const auto& [pattern, line] : {Case{R"(ab{2}cdef)", "abbcdef"}, Case{R"(abcd{0,1}efgh)", "abcefgh"},
                                      Case{R"((?i:Over|Under)flow \(at\) x)", "UNDERFLOW (AT) x"},
                                      Case{R"(one two|(?:three )+four)", "three three four"}}) {
    ASSERT_TRUE(RE2::PartialMatch(line, std::string("(?i)") + pattern)) << pattern;
    std::string low(line);
    for (char& c : low) c = static_cast<char>(std::tolower(c));
    const Texts needed = needed_literals(pattern, 1);
    EXPECT_TRUE(std::any_of(needed.begin(), needed.end(), [&](const std::string& text) {
      return low.find(text) != std::string::npos;
    })) << pattern;
  }
}

}  // namespace
}  // namespace trapline
