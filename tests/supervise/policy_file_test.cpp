#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "supervise/options.hpp"

namespace trapline::supervise {
namespace {

class PolicyFile : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "policy-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    ::close(fd);
    std::ofstream(name) << text;
    files_.emplace_back(name);
    return files_.back();
  }
  // The error, without the file's name; empty: it was read.
  std::string error_of(const std::string& text) {
    Wishes wishes;
    const auto file = write(text);
    const auto error = add_policy_file(file, wishes);
    return error ? error->line().substr(file.string().size()) : "";
  }
  ~PolicyFile() override {
    for (const auto& file : files_) std::filesystem::remove(file);
  }
  std::vector<std::filesystem::path> files_;
};

TEST_F(PolicyFile, EveryKey) {
  Wishes wishes;
  const auto error = add_policy_file(
      write("listen = ['127.0.0.1:8000', 'unix:/run/a.sock']\nstatus = '9464'\n"
            "probe = 'http://127.0.0.1:8000/healthz'\nprobe_interval = 0.5\n"
            "probe_timeout = 3\nprobe_failures = 5\nstall = 300\ngrace = 20\n"
            "replace = 'process'\nstandby = true\nrestarts = 4\nwindow = 60\ndelay = 2\nmax_delay = 30\n"
            "[decide]\nTL401 = 'stop'\nout_of_memory = 'retry'\n"),
      wishes);
  ASSERT_FALSE(error) << error->line();
  const auto settings = settings_of(wishes);
  ASSERT_TRUE(settings) << settings.error().line();
  ASSERT_EQ(settings->listen.size(), 2U);
  EXPECT_EQ(to_text(settings->listen[0]), "127.0.0.1:8000");
  EXPECT_EQ(to_text(settings->listen[1]), "unix:/run/a.sock");
  EXPECT_EQ(to_text(*settings->status), "127.0.0.1:9464");
  EXPECT_EQ(settings->probe->path, "/healthz");
  EXPECT_EQ(settings->probe_interval, 0.5);
  EXPECT_EQ(settings->probe_timeout, 3);
  EXPECT_EQ(settings->probe_failures, 5);
  EXPECT_EQ(settings->stall, 300);
  EXPECT_EQ(settings->grace, 20);
  EXPECT_TRUE(settings->standby);
  EXPECT_TRUE(settings->replaces_process);
  EXPECT_EQ(settings->policy.restarts, 4);
  EXPECT_EQ(settings->policy.window, 60);
  EXPECT_EQ(settings->policy.delay, 2);
  EXPECT_EQ(settings->policy.max_delay, 30);
  EXPECT_TRUE(settings->policy.is_service);
  EXPECT_EQ(settings->policy.decisions.at(Cause::kOutOfMemory), Action::kRetry) << "the later line";
}

TEST_F(PolicyFile, FlagsWin) {
  Wishes wishes;
  wishes.restarts = 1;
  wishes.listen = {"7000"};
  ASSERT_FALSE(add_policy_file(write("restarts = 9\nlisten = '8000'\ngrace = 3\n"), wishes));
  EXPECT_EQ(wishes.restarts, 1);
  EXPECT_EQ(wishes.listen, std::vector<std::string>{"7000"});
  EXPECT_EQ(wishes.grace, 3);
}

TEST_F(PolicyFile, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("\nrestarts = 'many'\n"),
            ":2: restarts must be a whole number from 0 to 1000000: correct the value");
  EXPECT_EQ(error_of("restarts = -1\n"),
            ":1: restarts must be a whole number from 0 to 1000000: correct the value");
  EXPECT_EQ(error_of("restarts = 2.5\n"),
            ":1: restarts must be a whole number from 0 to 1000000: correct the value");
  EXPECT_EQ(error_of("grace = nan\n"), ":1: grace must be a number from 0 to 3600: correct the value");
  EXPECT_EQ(error_of("retries = 3\n"), ":1: there is no 'retries': the keys are in docs/supervise.md");
  EXPECT_EQ(error_of("[decide]\nTL999 = 'stop'\n"), ":2: 'TL999' is no cause: see `trapline why`");
  EXPECT_EQ(error_of("[decide]\nTL101 = 'skip'\n"),
            ":2: TL101 must be \"retry\", \"quarantine\" or \"stop\": correct the value");
  EXPECT_EQ(error_of("listen = [1]\n"),
            ":1: listen must be an address or a list of them: e.g. listen = \"127.0.0.1:8000\"");
  EXPECT_NE(error_of("restarts = \n"), "");
  for (const char* damaged :
       {"[", "[[", "[[[", "[]", "[[]]", "[a.", "[a. ]", "a. = 1", "= 1", "\"", "a = [", "a = {"}) {
    EXPECT_NE(error_of(damaged), "") << damaged;
  }
  EXPECT_NE(error_of(std::string(100000, '[')), "") << "nesting is bounded by the library";
}

}  // namespace
}  // namespace trapline::supervise
