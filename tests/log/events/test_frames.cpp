#include <gtest/gtest.h>

#include <string>

#include "log/events/frames.hpp"

namespace trapline {
namespace {

FrameParser parse(std::string_view text) {
  FrameParser parser;
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    parser.line(text.substr(0, end), ++number);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parser;
}

const Frame* user(const FrameParser& parser) {
  const LogFrame* frame = parser.tracebacks().empty() ? nullptr : parser.tracebacks().front().deepest_user();
  return frame == nullptr ? nullptr : &frame->frame;
}

void expect_user(std::string_view text, std::string_view file, std::int64_t line) {
  const FrameParser parser = parse(text);
  const Frame* frame = user(parser);
  ASSERT_NE(frame, nullptr) << text;
  EXPECT_EQ(frame->file, file) << text;
  EXPECT_EQ(frame->line, line) << text;
}

TEST(Frames, Python) {
  const FrameParser parser = parse(
      "Traceback (most recent call last):\n"
      "  File \"main.py\", line 10, in <module>\n    main()\n    ^^^^^^\n"
      "  File \"/srv/job/train.py\", line 41, in step\n    loss = F.nll_loss(x, y)\n"
      "  File \"/opt/conda/lib/python3.8/site-packages/torch/nn/functional.py\", line 2115, in nll_loss\n    "
      "ret = f()\n"
      "IndexError: Target 5 is out of bounds.\n");
  ASSERT_EQ(parser.tracebacks().size(), 1U);
  const Traceback& t = parser.tracebacks()[0];
  ASSERT_EQ(t.frames.size(), 3U);
  EXPECT_EQ(t.frames[0].frame.code, "main()");
  EXPECT_EQ(t.frames[1].frame.code, "loss = F.nll_loss(x, y)");
  EXPECT_EQ(t.frames[1].frame.function, "step");
  EXPECT_TRUE(t.frames[1].user);
  EXPECT_FALSE(t.frames[2].user);
  EXPECT_EQ(t.exception, "IndexError");
  EXPECT_EQ(t.message, "Target 5 is out of bounds.");
  EXPECT_TRUE(t.closed);
}

TEST(Frames, Windows) {
  expect_user("  File \"C:\\code\\job\\t.py\", line 42, in f\n    x()\n", "C:\\code\\job\\t.py", 42);
}
TEST(Frames, WithoutHeader) {
  expect_user("  File \"a.py\", line 3, in f\n    g()\nValueError: no\n", "a.py", 3);
}
TEST(Frames, ModuleNameEaten) {
  expect_user("File \"a.py\", line 471, in\nmain()\nFile \"b.py\", line 3, in f\ng()\n", "b.py", 3);
}
TEST(Frames, EscapedQuotes) { expect_user("File \\\"a.py\\\", line 3, in f\n", "a.py", 3); }

TEST(Frames, LoggersPrefix) {
  const FrameParser parser = parse(
      "2022-12-22 06:11:54 [ERROR]    File \"a.py\", line 3, in f\n2022-12-22 06:11:55 [ERROR]      v = "
      "x.item()\n");
  ASSERT_NE(user(parser), nullptr);
  EXPECT_EQ(user(parser)->code, "v = x.item()");
}

TEST(Frames, OldNotebook) {
  expect_user(
      "<ipython-input-24-0f1e> in <module>()\n    544 x\n--> 546 train(net)\n    547 y\n\n"
      "/usr/local/lib/python3.7/dist-packages/torch/a.py in f(x)\n--> 194     out = g()\n\nRuntimeError: "
      "no\n",
      "<ipython-input-24-0f1e>", 546);
}
TEST(Frames, NewNotebook) {
  expect_user(
      "Cell In[29], line 29\n    27 a\n--> 29 run(net)\n\nFile "
      "/usr/local/lib/python3.10/dist-packages/x/y.py:344, in run(self, x)\n--> 344 z()\n",
      "Cell In[29]", 29);
}
TEST(Frames, RichBox) {
  expect_user(
      "--- Traceback (most recent call last) ---\n answer.py:519 in <module>\n\n     517   mask\n  \u2771  "
      "519   main()\n",
      "answer.py", 519);
}
TEST(Frames, Loguru) {
  expect_user(
      "> File \"/p/yolox/head.py\", line 308, in get\n    res = f(x)\n    \u2502     \u2514 <function>\n",
      "/p/yolox/head.py", 308);
}
TEST(Frames, Prose) {
  expect_user(
      "Line 253 of start.py in train:\nobj = crit(a, b)\nLine 11 of /x/lib/python3.8/site-packages/t/m.py in "
      "f:\ng()\n",
      "start.py", 253);
}
TEST(Frames, LuaIsInnermostFirst) {
  expect_user(
      "stack traceback:\n\t/usr/local/share/lua/5.1/nn/THNN.lua:64: in function 'f'\n\t/mnt/p/s.lua:103: in "
      "function 'train'\n\t/mnt/p/e.lua:195: in main chunk\n",
      "/mnt/p/s.lua", 103);
}
TEST(Frames, WrappedInMidWord) {
  const FrameParser parser = parse(
      "Traceback (most recent call last):\n  File \"/srv/job/trai\nner.py\", line 149, in train\n    x()\n");
  ASSERT_NE(user(parser), nullptr);
  EXPECT_EQ(user(parser)->file, "/srv/job/trainer.py");
}
TEST(Frames, TornByThreads) {
  expect_user(
      "  File \"/x/site-packages/a.py  File \"/w/job/model.py\", line 84, in forwardTraceback\n\", line 83, "
      "in _worker\n",
      "/w/job/model.py", 84);
}
TEST(Frames, BoundedWhateverComes) {
  FrameParser parser;
  for (int i = 0; i < 5000; ++i) {
    parser.line("Traceback (most recent call last):", i);
    for (int k = 0; k < 3; ++k) parser.line("  File \"a.py\", line 3, in f", i);
    parser.line("ValueError: x", i);
  }
  EXPECT_LE(parser.tracebacks().size(), 12U);
  for (int i = 0; i < 5000; ++i) parser.line("  File \"a.py\", line 3, in f", 5000 + i);
  for (const Traceback& t : parser.tracebacks()) EXPECT_LE(t.frames.size(), 64U);
}

TEST(Frames, UserAndLibrary) {
  for (const std::string_view file :
       {"train.py", "/home/u/proj/models/net.py", "C:\\code\\x.py", "<ipython-input-1-a>", "Cell In[3]"})
    EXPECT_TRUE(is_user_file(file)) << file;
  for (const std::string_view file :
       {"/opt/conda/lib/python3.8/site-packages/torch/x.py", "/usr/lib/python3/dist-packages/x.py",
        "/home/u/.local/lib/python3.6/queue.py", "C:\\Users\\u\\anaconda3\\lib\\site-packages\\x.py",
        "/usr/lib/python3.10/threading.py", "<frozen importlib._bootstrap>",
        "cupy_backends/cuda/api/driver.pyx"})
    EXPECT_FALSE(is_user_file(file)) << file;
}

}  // namespace
}  // namespace trapline
