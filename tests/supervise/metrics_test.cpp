#include <gtest/gtest.h>

#include "supervise/board.hpp"

namespace trapline::supervise {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, Values) {
  Snapshot now;
  now.state = State::kReady;
  now.starts = 3;
  now.refused = 2;
  now.faults = {{"TL103", 2}, {"none", 1}};
  now.decisions = {{"retry", 3}};
  now.poisoned_seconds = 0.5;
  now.last_to_ready = 1.5;
  const std::string text = metrics_of(now);
  EXPECT_TRUE(has_line(text, "trapline_ready 1")) << text;
  EXPECT_TRUE(has_line(text, "trapline_state{state=\"ready\"} 1"));
  EXPECT_TRUE(has_line(text, "trapline_state{state=\"poisoned\"} 0"));
  EXPECT_TRUE(has_line(text, "trapline_starts_total 3"));
  EXPECT_TRUE(has_line(text, "trapline_refused_requests 2"));
  EXPECT_TRUE(has_line(text, "trapline_faults_total{code=\"TL103\"} 2"));
  EXPECT_TRUE(has_line(text, "trapline_faults_total{code=\"none\"} 1"));
  EXPECT_TRUE(has_line(text, "trapline_decisions_total{action=\"retry\"} 3"));
  EXPECT_TRUE(has_line(text, "trapline_poisoned_seconds_total 0.5"));
  EXPECT_TRUE(has_line(text, "trapline_seconds_to_ready 1.5"));
  EXPECT_TRUE(has_line(text, "# TYPE trapline_faults_total counter"));
}

}  // namespace
}  // namespace trapline::supervise
