#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "supervise/board.hpp"

namespace trapline::supervise {
namespace {

Snapshot hostile() {
  Snapshot now;
  now.state = State::kPoisoned;
  now.since = now.started = unix_time() - 100;
  now.program = "python <script>alert(1)</script> {{figures}}";
  now.incidents.push_back({unix_time() - 5, 3, "TL103", "\"><img src=x onerror=alert(2)> \x1b[31m \xff",
                           "a&b.py:3", "retry", "it's '<b>'", 1.25});
  return now;
}

TEST(Page, EverythingFromOutsideIsEscaped) {
  const std::string page = page_of(hostile());
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<b>'"), std::string::npos);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_NE(page.find("python &lt;script&gt;alert(1)&lt;/script&gt; {{figures}}"), std::string::npos)
      << "what was filled in is not a template";
  EXPECT_NE(page.find("a&amp;b.py:3"), std::string::npos);
  EXPECT_NE(page.find("retry: it&#39;s &#39;&lt;b&gt;&#39;; ready again after 1.2 s"), std::string::npos);
  EXPECT_NE(page.find("<h1 class=\"poisoned\">poisoned</h1>"), std::string::npos);
}

TEST(Page, NothingSoFar) {
  Snapshot now;
  now.started = now.since = unix_time();
  EXPECT_NE(page_of(now).find("None so far."), std::string::npos);
}

TEST(Page, JsonHoldsWhatThePageShows) {
  const auto read = nlohmann::json::parse(json_of(hostile()));
  EXPECT_EQ(read["state"], "poisoned");
  EXPECT_EQ(read["incidents"][0]["code"], "TL103");
  EXPECT_EQ(read["incidents"][0]["seconds_to_ready"], 1.25);
  EXPECT_EQ(read["standby"], "none");
}

TEST(Board, IsAliveWhileItBeats) {
  Board board;
  EXPECT_FALSE(board.is_alive());
  board.beat();
  EXPECT_TRUE(board.is_alive());
}

}  // namespace
}  // namespace trapline::supervise
