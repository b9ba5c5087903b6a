#include <gtest/gtest.h>

#include "../read/reader_kept.hpp"
#include "log/clean/text.hpp"

namespace trapline {
namespace {

std::string cleaned(std::string_view raw, bool* replaced = nullptr) {
  std::string scratch;
  bool ignored = false;
  return std::string(clean_text(raw, scratch, replaced == nullptr ? ignored : *replaced));
}

TEST(ReaderClean, EscapeSequencesGo) {
  EXPECT_EQ(cleaned("\x1b[1;31mRuntimeError\x1b[0m: x"), "RuntimeError: x");
  EXPECT_EQ(cleaned("\x1b]0;title\aRuntimeError"), "RuntimeError");
  EXPECT_EQ(cleaned("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ text"), "link text");
  EXPECT_EQ(cleaned("\x1b(BRuntimeError\x1b[K"), "RuntimeError");
  EXPECT_EQ(cleaned("^[[31mRuntimeError^[[0m: x"), "RuntimeError: x");
  EXPECT_EQ(cleaned("\x1b]never ended"), "never ended");
  EXPECT_EQ(cleaned("x\x1b"), "x");
}

TEST(ReaderClean, NothingOddIsMissedWhereverItStands) {
  for (std::size_t before = 0; before < 100; ++before) {
    const std::string start = std::string(before, 'a') + " error";
    EXPECT_EQ(cleaned(start + "\x1b[31m red"), start + " red") << before;
    EXPECT_EQ(cleaned(start + "\x7f."), start + ".") << before;
    EXPECT_EQ(cleaned(start + "\xff."), start + "\uFFFD.") << before;
    EXPECT_EQ(cleaned(start + "\t."), start + "\t.") << before;
  }
}

TEST(ReaderClean, BytesThatAreNoTextAreReplacedOrGo) {
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

TEST(ReaderClean, AProgressBarIsDroppedAndTextGluedToItKept) {
  const std::string text =
      "  0%|          | 0/96 [00:00<?, ?it/s]\r  1%|\u258f         | 1/96 [00:02<01:35, 5.81it/s]"
      "RuntimeError: x\n"
      "Epoch 1:  45%|####5     | 45/100 [00:12<00:15,  3.61s/it, loss=0.42][rank1]: RuntimeError: y\n"
      "0it [00:00, ?it/s]/pytorch/x.cu:1: Assertion `z` failed.\n"
      " 30%|###       | 119/388 [01:59<04:29, 7.34it/s]\n"
      "first error\rsecond error\n";
  const Kept kept = read_text(text);
  EXPECT_EQ(kept.texts(),
            (std::vector<std::string>{
                "RuntimeError: x", "RuntimeError: y", "/pytorch/x.cu:1: Assertion `z` failed.",
                " 30%|###       | 119/388 [01:59<04:29, 7.34it/s]", "first error", "second error"}));
  EXPECT_EQ(kept.lines[1].rank, 1);
  EXPECT_EQ(kept.lines[4].number, 5);
  EXPECT_EQ(kept.lines[5].number, 5);
}

TEST(ReaderClean, WhatABarSaidStaysWithTheLinesBehindIt) {
  const Kept kept = read_text(
      "error 1\n  0%|          | 0/9 [00:00<?, ?it/s]error 2\n 40%|####  | 4/9 [00:09<00:12, 4it/s]\rerror "
      "3\n"
      "error 4\n0it [00:00, ?it/s]error 5\n");
  std::vector<int> progress;
  for (const KeptLine& line : kept.lines) progress.push_back(line.progress);
  EXPECT_EQ(progress, (std::vector<int>{-1, 0, 40, 40, 0}));
}

TEST(ReaderClean, TextThatOnlyLooksLikeABarStays) {
  for (const std::string_view text : {"x[0:3] | y", "block: [0,0,0], thread: [1,0,0] Assertion",
                                      "loss 50%| x", "[E704 10:58:27 x.cpp:1] a/s b"}) {
    EXPECT_EQ(without_progress_bar(text), text);
    EXPECT_FALSE(is_progress_bar(text));
  }
}

TEST(ReaderClean, JsonLinesGiveTheirMessage) {
  const std::string text =
      "{\"level\":\"ERROR\",\"message\":\"RuntimeError: \\\"x\\\"\\n  at "
      "y\",\"rank\":3,\"pid\":17,\"host\":\"n1\"}\n"
      "{\"log\":\"[rank2]: RuntimeError: y\\n\",\"stream\":\"stderr\",\"time\":\"2024-05-11T21:05:25Z\"}\n"
      "{\"msg\":\"failed\",\"exc_info\":\"Traceback (most recent call last):\\n  File \\\"a.py\\\", line 1, "
      "in f\"}\n"
      "{\"jsonPayload\":{\"message\":\"error \\u001b[31mred\\u001b[0m \\u00e9\\ud83d\\ude00\"}}\n"
      "{'loss': 0.5, 'error': 1}\n"
      "{\"value\": 1, \"fatal\": [1, {\"message\": 2}]}\n";
  const Kept kept = read_text(text);
  EXPECT_EQ(kept.texts(),
            (std::vector<std::string>{"RuntimeError: \"x\"", "  at y", "RuntimeError: y", "failed",
                                      "Traceback (most recent call last):", "  File \"a.py\", line 1, in f",
                                      "error red \u00e9\U0001F600", "{'loss': 0.5, 'error': 1}",
                                      "{\"value\": 1, \"fatal\": [1, {\"message\": 2}]}"}));
  EXPECT_EQ(kept.lines[1].rank, 3);
  EXPECT_EQ(kept.lines[1].pid, 17);
  EXPECT_EQ(kept.lines[1].host, "n1");
  EXPECT_EQ(kept.lines[1].number, 1);
  EXPECT_EQ(kept.lines[2].rank, 2);
}

std::vector<std::string> split(std::string_view line) {
  std::string scratch;
  std::vector<std::string_view> parts;
  split_literal_newlines(line, scratch, parts);
  return {parts.begin(), parts.end()};
}

using Parts = std::vector<std::string>;

TEST(ReaderClean, LiteralLineBreaksBreakLines) {
  EXPECT_EQ(
      split(R"(Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nRuntimeError: x)"),
      (Parts{"Traceback (most recent call last):", "  File \"a.py\", line 1, in f", "    g()",
             "RuntimeError: x"}));
  EXPECT_EQ(split(R"("Traceback:\n  File \"C:\\new\\a.py\", line 1\n    g()\nRuntimeError")"),
            (Parts{"\"Traceback:", "  File \"C:\\new\\a.py\", line 1", "    g()", "RuntimeError\""}));
  EXPECT_EQ(split(R"(x.cu:1: Assertion `a` failed.\nx.cu:1: Assertion `a` failed.)"),
            (Parts{"x.cu:1: Assertion `a` failed.", "x.cu:1: Assertion `a` failed."}));
}

TEST(ReaderClean, WindowsPathsAndSourceCodeKeepTheirBackslashes) {
  for (const std::string_view line :
       {R"(  File "C:\Users\bob\new\net.py", line 1, in f)", R"(    print("a\nb"))",
        R"(    raise ValueError("x\n"))", R"(C:\cb\pytorch\aten\src\native\x.cu:1: Assertion `a` failed.)",
        R"(tail\)"}) {
    EXPECT_EQ(split(line), (Parts{std::string(line)}));
  }
}

}  // namespace
}  // namespace trapline
