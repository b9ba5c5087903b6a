#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "log/events/message_matcher.hpp"

namespace trapline {
namespace {

std::vector<std::string_view> ids(const LineMatches& matches) {
  std::vector<std::string_view> all;
  for (const WordingRow* row : matches.wordings) all.push_back(row->id);
  return all;
}

using Ids = std::vector<std::string_view>;

TEST(MessageMatcher, MessagesOfOneLine) {
  MessageMatcher matcher;
  EXPECT_EQ(ids(matcher.line("RuntimeError: CUDA error: unspecified launch failure", false)),
            Ids{"unspecified launch failure"});
  EXPECT_EQ(ids(matcher.line("step 3, loss 0.4", false)), Ids{});
}

TEST(MessageMatcher, AMessageMaySpanALongLineAndTheNext) {
  const std::string_view first = "[rank0]: RuntimeError: CUDA error: unspecified lau", second = "nch failure";
  MessageMatcher matcher;
  EXPECT_EQ(ids(matcher.line(first, false)), Ids{"gpu.trouble"});  // more is not known yet
  const LineMatches& matches = matcher.line(second, true);
  EXPECT_EQ(ids(matches), Ids{"unspecified launch failure"});
  EXPECT_TRUE(matches.spanning);

  MessageMatcher short_lines;
  short_lines.line(first, false);
  EXPECT_EQ(ids(short_lines.line(second, false)), Ids{});
}

TEST(MessageMatcher, AMessageBehindAnotherLineDoesNotSpan) {
  MessageMatcher matcher;
  matcher.line("a long line that was perhaps wrapped by someone", false);
  EXPECT_FALSE(matcher.line("CUDA error: unspecified launch failure", true).spanning);
}

TEST(MessageMatcher, ThePartsOfAnAssertionInTheirOrder) {
  MessageMatcher matcher;
  const LineMatches& matches = matcher.line(
      "Indexing.cu:1237: indexSelectSmallIndex: block: [3,0,0], thread: [64,0,0] Assertion "
      "`srcIndex < srcSelectDimSize` failed.",
      false);
  std::vector<AssertPart::Kind> kinds;
  for (const AssertPart& part : matches.parts) kinds.push_back(part.kind);
  using enum AssertPart::Kind;
  EXPECT_EQ(kinds, (std::vector{kFile, kKernel, kBlock, kThread, kAssertion}));
  EXPECT_TRUE(matches.assertion);
  ASSERT_NE(matches.condition, nullptr);
  EXPECT_EQ(matches.condition->condition, "srcIndex < srcSelectDimSize");
  EXPECT_GT(matches.end, matches.parts.back().at);
}

// "index >= -sizes[i] && index < sizes[i]" begins the longer condition with "index out of bounds" behind it.
TEST(MessageMatcher, TheLongestConditionCounts) {
  MessageMatcher matcher;
  const LineMatches& matches =
      matcher.line("`-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"` failed", false);
  ASSERT_NE(matches.condition, nullptr);
  EXPECT_NE(matches.condition->condition.find("index out of bounds"), std::string_view::npos);
}

}  // namespace
}  // namespace trapline
