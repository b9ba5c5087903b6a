#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "doctor/bounded.hpp"
#include "run/environment.hpp"

namespace trapline::doctor {
namespace {

std::vector<std::string> here() { return current_environment(); }

TEST(Ask, TellsWhatItSaidAndHowItEnded) {
  const Answer answer = ask({"sh", "-c", "echo out; echo err >&2; exit 7"}, here(), 20);
  EXPECT_EQ(answer.output, "out\nerr\n");
  EXPECT_EQ(answer.ended.exit_code, 7);
  EXPECT_FALSE(answer.timed_out);
}

TEST(Ask, KeepsTheEndOfALongAnswer) {
  const Answer answer = ask({"sh", "-c", "head -c 1000000 /dev/zero; echo end"}, here(), 20);
  EXPECT_TRUE(answer.output.ends_with("end\n"));
  EXPECT_EQ(answer.output.size(), 8192U);
}

TEST(Ask, KillsWhatTakesTooLongAndWhatItStarted) {
  const auto begin = std::chrono::steady_clock::now();
  const Answer answer = ask({"sh", "-c", "trap '' TERM INT; sleep 100 & echo $!; wait"}, here(), 0.5);
  EXPECT_TRUE(answer.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  const int child = std::stoi(answer.output);
  for (int i = 0; i < 200 && ::kill(child, 0) == 0; ++i) ::usleep(20'000);
  EXPECT_NE(::kill(child, 0), 0);
}

TEST(Ask, DoesNotWaitForWhatIsLeftBehind) {
  const auto begin = std::chrono::steady_clock::now();
  const Answer answer = ask({"sh", "-c", "sleep 5 & echo done"}, here(), 60);
  EXPECT_FALSE(answer.timed_out);
  EXPECT_EQ(answer.output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST(Ask, SaysWhatIsNotThere) {
  EXPECT_NE(ask({"no-such-program-anywhere"}, here(), 1).error.find("not found on PATH"), std::string::npos);
}

TEST(AskChild, ReturnsTheText) {
  EXPECT_EQ(ask_child([] { return std::string("text"); }, 20), "text");
}

TEST(AskChild, ACrashAndASleepAreNoAnswer) {
  EXPECT_EQ(ask_child(
                []() -> std::string {
                  ::raise(SIGKILL);
                  return "";
                },
                20),
            std::nullopt);
  EXPECT_EQ(ask_child(
                []() -> std::string {
                  ::sleep(100);
                  return "";
                },
                0.2),
            std::nullopt);
}

}  // namespace
}  // namespace trapline::doctor
