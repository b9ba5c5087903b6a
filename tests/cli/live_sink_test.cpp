#include "cli/live_sink.hpp"

#include <gtest/gtest.h>

namespace trapline::cli {
namespace {

constexpr std::string_view kAssertion =
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
    "thread: "
    "[5,0,0] Assertion `t >= 0 && t < n_classes` failed.";

struct Said {
  std::vector<std::string> lines;
  Reasoner reasoner;
  LiveSink sink{reasoner, [this](const std::string& line) { lines.push_back(line); }};

  void feed(std::string_view text, std::int64_t number) {
    Line line;
    line.text = text;
    line.source = "<stdin>";
    line.number = number;
    sink.line(line);
    sink.quiet();
  }
};

TEST(LiveSink, SaysNothingWhileNothingFailed) {
  Said said;
  said.feed("epoch 1", 1);
  said.sink.quiet();
  EXPECT_TRUE(said.lines.empty());
}

TEST(LiveSink, SaysTheCauseOnce) {
  Said said;
  said.feed(kAssertion, 1);
  said.feed(kAssertion, 2);
  ASSERT_EQ(said.lines.size(), 1U);
  EXPECT_TRUE(said.lines[0].starts_with("so far TL101, determined: ")) << said.lines[0];
}

TEST(LiveSink, SaysAgainWhenTheCauseChanges) {
  Said said;
  said.feed("RuntimeError: CUDA error: device-side assert triggered", 1);
  said.feed(kAssertion, 2);
  ASSERT_EQ(said.lines.size(), 2U);
  EXPECT_TRUE(said.lines[1].starts_with("so far TL101")) << said.lines[1];
}

TEST(LiveSink, RemembersEmptySources) {
  Said said;
  said.sink.end_of_source("a.log", {});
  EXPECT_EQ(said.sink.empty_sources(), std::vector<std::string>{"a.log"});
}

}  // namespace
}  // namespace trapline::cli
