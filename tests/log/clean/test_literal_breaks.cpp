#include <gtest/gtest.h>

#include <string>

#include "log/clean/literal_breaks.hpp"

namespace trapline {
namespace {

std::vector<std::string> split(std::string_view line) {
  std::string scratch;
  std::vector<std::string_view> parts;
  split_literal_newlines(line, scratch, parts);
  return {parts.begin(), parts.end()};
}

using Parts = std::vector<std::string>;

TEST(LiteralBreaks, LiteralLineBreaksBreakLines) {
  EXPECT_EQ(
      split(R"(Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nRuntimeError: x)"),
      (Parts{"Traceback (most recent call last):", "  File \"a.py\", line 1, in f", "    g()",
             "RuntimeError: x"}));
  EXPECT_EQ(split(R"("Traceback:\n  File \"C:\\new\\a.py\", line 1\n    g()\nRuntimeError")"),
            (Parts{"\"Traceback:", "  File \"C:\\new\\a.py\", line 1", "    g()", "RuntimeError\""}));
  EXPECT_EQ(split(R"(x.cu:1: Assertion `a` failed.\nx.cu:1: Assertion `a` failed.)"),
            (Parts{"x.cu:1: Assertion `a` failed.", "x.cu:1: Assertion `a` failed."}));
}

TEST(LiteralBreaks, WindowsPathsAndSourceCodeKeepTheirBackslashes) {
  for (const std::string_view line :
       {R"(  File "C:\Users\bob\new\net.py", line 1, in f)", R"(    print("a\nb"))",
        R"(    raise ValueError("x\n"))", R"(C:\cb\pytorch\aten\src\native\x.cu:1: Assertion `a` failed.)",
        R"(tail\)"}) {
    EXPECT_EQ(split(line), (Parts{std::string(line)}));
  }
}

// Where line breaks are written out, that of the last line is, too.
TEST(LiteralBreaks, TheLastLineEndsAsTheOthersDo) {
  EXPECT_EQ(split(R"(RuntimeError: x\nAborted\n)"), (Parts{"RuntimeError: x", "Aborted", ""}));
}

}  // namespace
}  // namespace trapline
