// A child as a supervisor uses it: started, watched, signalled, waited for, started again.
#include "run/child.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "run/environment.hpp"
#include "temporary.hpp"

namespace trapline {
namespace {

Child shell(const std::string& script, SignalForwarding* forwarding = nullptr) {
  return Child({"sh", "-c", script}, current_environment(), forwarding);
}

// Up to 20 seconds, for machines that are busy.
bool soon(const auto& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  return line.empty() ? '-' : line[line.rfind(')') + 2];
}

TEST(Child, BeforeTheFirstStartThereIsNothing) {
  Child child = shell("exit 3");
  EXPECT_FALSE(child.is_running());
  EXPECT_EQ(child.pid(), 0);
  EXPECT_FALSE(child.poll());
  EXPECT_FALSE(child.wait());
  EXPECT_FALSE(child.signal(SIGTERM));
}

TEST(Child, RunsUntilItEnds) {
  const Temporary temporary;
  const std::string gate = (temporary / "gate").string();
  Child child = shell("while [ ! -e " + gate + " ]; do sleep 0.01; done; exit 3");
  ASSERT_FALSE(child.start());
  EXPECT_TRUE(child.is_running());
  EXPECT_FALSE(child.poll());
  EXPECT_FALSE(child.poll());
  temporary.write("gate", "");
  ASSERT_TRUE(soon([&] { return child.poll().has_value(); }));
  EXPECT_EQ(child.poll()->exit_code, 3);
  EXPECT_FALSE(child.is_running());
  EXPECT_FALSE(child.signal(SIGTERM)) << "its pid may be another process's by now";
}

TEST(Child, TellsItsEndAsOftenAsItIsAsked) {
  Child child = shell("exit 7");
  ASSERT_FALSE(child.start());
  EXPECT_EQ(child.wait()->exit_code, 7);
  EXPECT_EQ(child.wait()->exit_code, 7);
  EXPECT_EQ(child.poll()->exit_code, 7);
}

TEST(Child, IsSignalled) {
  Child child = shell("trap 'exit 42' TERM; echo > ready; while :; do sleep 0.01; done");
  const Temporary temporary;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(temporary.path());
  const auto error = child.start();
  std::filesystem::current_path(before);
  ASSERT_FALSE(error);
  ASSERT_TRUE(soon([&] { return std::filesystem::exists(temporary / "ready"); }));
  EXPECT_TRUE(child.signal(SIGTERM));
  EXPECT_EQ(child.wait()->exit_code, 42);
}

TEST(Child, ASignalThatKillsIt) {
  Child child = shell("exec sleep 60");
  ASSERT_FALSE(child.start());
  EXPECT_TRUE(child.signal(SIGKILL));
  const auto ended = child.wait();
  EXPECT_EQ(ended->signal, SIGKILL);
  EXPECT_EQ(ended->exit_code, 128 + SIGKILL);
  EXPECT_FALSE(ended->core_dumped);
}

TEST(Child, StartsAgain) {
  const Temporary temporary;
  // The first time it fails, the second time not.
  const std::string mark = (temporary / "mark").string();
  Child child = shell("[ -e " + mark + " ] && exit 0; echo > " + mark + "; exit 9");
  ASSERT_FALSE(child.start());
  EXPECT_EQ(child.wait()->exit_code, 9);
  ASSERT_FALSE(child.start());
  EXPECT_EQ(child.wait()->exit_code, 0);
  ASSERT_FALSE(child.start());
  EXPECT_TRUE(child.is_running());
  EXPECT_EQ(child.wait()->exit_code, 0);
}

TEST(Child, ASecondStartWhileItRunsIsRefused) {
  Child child = shell("exec sleep 60");
  ASSERT_FALSE(child.start());
  const pid_t pid = child.pid();
  const auto error = child.start();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->line(), "cannot start 'sh': it is running: wait for its end first");
  EXPECT_EQ(child.pid(), pid);
  EXPECT_FALSE(child.poll());
}

TEST(Child, WhatCannotBeStartedLeavesNothingBehind) {
  const Temporary temporary;
  const std::size_t descriptors = open_descriptors();
  const std::string script = temporary.write("train.py", "print(1)\n");
  const auto why = [](const std::string& name) {
    Child child({name}, current_environment());
    const auto error = child.start();
    EXPECT_FALSE(child.is_running());
    EXPECT_FALSE(child.wait());
    return error ? error->why : "it started";
  };
  EXPECT_EQ(why("pythn-no-such"), "not found on PATH");
  EXPECT_EQ(why("/no/such"), "No such file or directory");
  EXPECT_EQ(why(script), "it is not executable");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  EXPECT_EQ(why(script), "not a program that this machine can run");
  temporary.write("train.py", "#!/no/such/python\n");
  EXPECT_EQ(why(script), "the interpreter that its first line names is missing");
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_FALSE(has_children());
}

TEST(Child, AFailedStartForgetsTheEndBefore) {
  const Temporary temporary;
  const std::string tool = temporary.write("tool", "#!/bin/sh\nexit 4\n");
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  Child child({tool}, current_environment());
  ASSERT_FALSE(child.start());
  EXPECT_EQ(child.wait()->exit_code, 4);
  std::filesystem::remove(tool);
  EXPECT_TRUE(child.start());
  EXPECT_FALSE(child.wait());
}

TEST(Child, AStoppedOneStillRuns) {
  Child child = shell("while :; do sleep 0.01; done");
  ASSERT_FALSE(child.start());
  ASSERT_TRUE(child.signal(SIGSTOP));
  ASSERT_TRUE(soon([&] { return state_of(child.pid()) == 'T'; }));
  EXPECT_FALSE(child.poll());
  EXPECT_TRUE(child.is_running());
  EXPECT_EQ(state_of(child.pid()), 'T') << "who stopped it goes on with it";
  ASSERT_TRUE(child.signal(SIGCONT));
  ASSERT_TRUE(soon([&] { return state_of(child.pid()) != 'T'; }));
  EXPECT_FALSE(child.poll());
  ASSERT_TRUE(child.signal(SIGTERM));
  EXPECT_EQ(child.wait()->signal, SIGTERM);
}

TEST(Child, ManyStartsLeakNeitherDescriptorsNorZombies) {
  Child child = shell("exit 1");
  const std::size_t descriptors = open_descriptors();
  for (int i = 0; i < 50; ++i) {
    ASSERT_FALSE(child.start());
    ASSERT_EQ(child.wait()->exit_code, 1);
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_FALSE(has_children());
}

TEST(Child, GoesWithItsObject) {
  pid_t pid = 0;
  {
    Child child = shell("exec sleep 60");
    ASSERT_FALSE(child.start());
    pid = child.pid();
    ASSERT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_FALSE(has_children());
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Child, ItsExitCodeIsSeenWhereALauncherIgnoresSigchld) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  Child child = shell("exit 5");
  const auto error = child.start();
  const auto ended = child.wait();
  ::signal(SIGCHLD, before);
  ASSERT_FALSE(error);
  EXPECT_EQ(ended->exit_code, 5);
}

TEST(SignalForwarding, ReachesEachOfSeveralChildren) {
  SignalForwarding forwarding;
  const Temporary temporary;
  for (const char* name : {"first", "second"}) {
    Child child =
        shell("trap 'exit 42' TERM; echo > " + (temporary / name).string() + "; while :; do sleep 0.01; done",
              &forwarding);
    ASSERT_FALSE(child.start());
    ASSERT_TRUE(soon([&] { return std::filesystem::exists(temporary / name); }));
    ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
    EXPECT_EQ(child.wait()->exit_code, 42) << name;
    EXPECT_FALSE(forwarding.holds(SIGTERM));
  }
}

TEST(SignalForwarding, HoldsWhatComesBetweenTwoChildren) {
  SignalForwarding forwarding;
  Child child = shell("exec sleep 60", &forwarding);
  EXPECT_FALSE(forwarding.holds(SIGTERM));
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  EXPECT_TRUE(forwarding.holds(SIGTERM)) << "a supervisor sees that it is to end";
  EXPECT_FALSE(forwarding.holds(SIGINT));
  ASSERT_FALSE(child.start());
  EXPECT_EQ(child.wait()->signal, SIGTERM) << "and a child that starts all the same gets it";
  EXPECT_FALSE(forwarding.holds(SIGTERM));
}

}  // namespace
}  // namespace trapline
