#include <gtest/gtest.h>

#include "../read/reader_kept.hpp"
#include "log/clean/line_maker.hpp"

namespace trapline {
namespace {

TEST(LineMaker, AProgressBarIsDroppedAndTextGluedToItKept) {
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

TEST(LineMaker, WhatABarSaidStaysWithTheLinesBehindIt) {
  const Kept kept = read_text(
      "error 1\n  0%|          | 0/9 [00:00<?, ?it/s]error 2\n 40%|####  | 4/9 [00:09<00:12, 4it/s]\rerror "
      "3\n"
      "error 4\n0it [00:00, ?it/s]error 5\n");
  std::vector<int> progress;
  for (const KeptLine& line : kept.lines) progress.push_back(line.progress);
  EXPECT_EQ(progress, (std::vector<int>{-1, 0, 40, 40, 0}));
}

TEST(LineMaker, JsonLinesGiveTheirMessage) {
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

// Where no final byte follows, what does is text, and keeps all of its bytes.
TEST(LineMaker, JsonEscapeSequencesThatNeverEnd) {
  const Kept kept =
      read_text("{\"message\":\"error: \\u001b[\u0650x\"}\n{\"message\":\"error: \\u001b[0;3\"}\n");
  EXPECT_EQ(kept.texts(), (std::vector<std::string>{"error: \u0650x", "error:"}));
}

// A tag under one known key hides nothing that stands under another; names are no text, and nothing is said
// twice.
TEST(LineMaker, JsonLinesGiveAllThatWasSaid) {
  const auto texts = [](const std::string& line) { return read_text(line + "\n").texts(); };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts(R"({"message":"stderr","event":"CUDA error: x"})"), (Texts{"stderr", "CUDA error: x"}));
  EXPECT_EQ(texts(R"({"msg":"child","chunk":"RuntimeError: x","id":"ab"})"),
            (Texts{"child", "RuntimeError: x"}));
  EXPECT_EQ(texts(R"({"stack":"Traceback:\n  error","msg":"failed"})"),
            (Texts{"failed", "Traceback:", "  error"}));
  EXPECT_EQ(texts(R"({"a":{"message":"x"},"b":{"c":{"d":{"text":"an error"}}}})"), (Texts{"x", "an error"}));
  EXPECT_EQ(texts(R"({"event":"failed","traceback":["Traceback:\n","  File \"a.py\", line 1, in f\n"]})"),
            (Texts{"failed", "Traceback:", "  File \"a.py\", line 1, in f"}));
  EXPECT_EQ(texts(R"({"text":"12:00 | x - an error\n","record":{"message":"an error","name":"__main__"}})"),
            (Texts{"12:00 | x - an error"}));
  EXPECT_EQ(texts(R"({"MESSAGE":[69,114,114,111,114,32,58,92,110]})"), Texts{"Error :\\n"});
  EXPECT_EQ(texts(R"({"event":"failed","exception":[{"exc_type":"RuntimeError","exc_value":"CUDA error: x",)"
                  R"("frames":[{"filename":"/a/b.py","lineno":61,"name":"main"}]}]})"),
            (Texts{"failed", "  File \"/a/b.py\", line 61, in main", "RuntimeError: CUDA error: x"}));
  EXPECT_EQ(texts(R"({"body":{"stringValue":"an error"},"severityText":"ERROR","kind":"FAILED"})"),
            Texts{"an error"});
  // The command line of a program that handles errors is no error.
  EXPECT_EQ(texts(R"({"_CMDLINE":"python a.py --on-error fail","MESSAGE":"an error"})"), Texts{"an error"});
  EXPECT_EQ(texts(R"({"log":"{\"level\":\"error\",\"msg\":\"an error\"}\n","stream":"stderr"})"),
            Texts{"an error"});
  EXPECT_EQ(texts(R"([{"message":"error 1"},{"message":"error 2"}])"), (Texts{"error 1", "error 2"}));
  EXPECT_EQ(texts(R"(["a", 1, "b"] error)"), Texts{R"(["a", 1, "b"] error)"});  // no JSON
}

// asciinema's pieces end anywhere: in mid word, in mid line. A line is where its end was printed.
TEST(LineMaker, ARecordedTerminalGivesWholeLines) {
  const Kept kept = read_text(
      "{\"version\": 2, \"width\": 80, \"height\": 24}\n"
      "[0.5, \"o\", \"RuntimeEr\"]\n[0.6, \"o\", \"ror: x\\r\\nsecond \\u001b[31mli\"]\n[0.61, \"i\", "
      "\"q\"]\n"
      "[0.7, \"o\", \"last error\"]\n");
  EXPECT_EQ(kept.texts(),
            (std::vector<std::string>{"{\"version\": 2, \"width\": 80, \"height\": 24}", "RuntimeError: x",
                                      "second li", "[0.61, \"i\", \"q\"]", "last error"}));
  EXPECT_EQ(kept.lines[1].number, 3);
  EXPECT_EQ(kept.lines[4].number, 5);
}

// What is clean stays as it is: no stage behind this one may have to clean again.
TEST(LineMaker, ACleanLineStaysAsItIs) {
  for (const std::string_view raw :
       {"\x1b[31m> **RuntimeError: x**\x1b[0m", "&amp;quot;RuntimeError&#39; =3D \uFF1A",
        "  3%|#   | 1/9 [00:05<02:05, 5.2it/s][rank1]: RuntimeError: x", "\u2502 RuntimeError: x \u2502",
        "{\"message\": \"RuntimeError: x &lt; y\"}", "[31mRuntimeError[0m: x"}) {
    Kept once, twice;
    LineMaker first(once), second(twice);
    first.begin("a.log");
    second.begin("a.log");
    first.raw_line(raw, 1, false);
    ASSERT_EQ(once.lines.size(), 1U) << raw;
    second.raw_line(once.lines[0].text, 1, false);
    EXPECT_EQ(twice.texts(), once.texts()) << raw;
    EXPECT_NE(once.lines[0].text, raw);
  }
}

}  // namespace
}  // namespace trapline
