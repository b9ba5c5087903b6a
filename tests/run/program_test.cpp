// Real children, no terminal.
#include "run/program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "run/environment.hpp"
#include "temporary.hpp"

namespace trapline {
namespace {

Result<ExitStatus> shell(const std::string& script) {
  return run_program({"sh", "-c", script}, current_environment());
}

int exit_code(const std::string& script) {
  const auto ended = shell(script);
  EXPECT_TRUE(ended) << ended.error().line();
  return ended ? ended->exit_code : -1;
}

TEST(Program, ExitCodeIsTheProgramsOwn) {
  EXPECT_EQ(exit_code("exit 0"), 0);
  EXPECT_EQ(exit_code("exit 3"), 3);
  EXPECT_EQ(exit_code("exit 255"), 255);
  EXPECT_EQ(exit_code("exit 127"), 127);
}

TEST(Program, ASignalIs128AndItsNumber) {
  const auto ended = shell("kill -SEGV $$");
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 128 + SIGSEGV);
  EXPECT_EQ(ended->signal, SIGSEGV);
  EXPECT_EQ(exit_code("kill -KILL $$"), 128 + SIGKILL);
}

TEST(Program, DoesNotWaitForItsDaemons) {
  const Temporary temporary;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(exit_code("sleep 60 </dev/null >/dev/null 2>&1 & echo $! > " + (temporary / "pid").string() +
                      "; exit 4"),
            4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
  ::kill(std::stoi(temporary.read("pid")), SIGKILL);
}

TEST(Program, WhatCannotBeStarted) {
  const Temporary temporary;
  const auto why = [](const std::string& name) {
    const auto ended = run_program({name}, current_environment());
    return ended ? std::string("it started") : ended.error().line();
  };
  EXPECT_EQ(why("pythn-no-such"), "cannot start 'pythn-no-such': not found on PATH: check the spelling");
  EXPECT_EQ(why(""), "cannot start '': not found on PATH: check the spelling");
  EXPECT_EQ(why("/no/such"), "cannot start '/no/such': No such file or directory: check the path");
  EXPECT_EQ(why(temporary.path()),
            "cannot start '" + temporary.path().string() + "': it is a folder: name the program in it");
  const std::string script = temporary.write("train.py", "print(1)\n");
  EXPECT_NE(why(script).find("it is not executable: chmod +x it, or name its interpreter"), std::string::npos)
      << why(script);
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  EXPECT_NE(why(script).find("not a program that this machine can run: name its interpreter"),
            std::string::npos)
      << why(script);
  temporary.write("train.py", "#!/no/such/python\n");
  EXPECT_NE(why(script).find("interpreter that its first line names"), std::string::npos) << why(script);
}

TEST(Program, PathIsTheOneOfTheEnvironment) {
  const Temporary temporary;
  const std::string tool = temporary.write("some-tool", "#!/bin/sh\nexit 9\n");
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  const auto ended = run_program({"some-tool"}, {"PATH=/no/such:" + temporary.path().string()});
  ASSERT_TRUE(ended) << ended.error().line();
  EXPECT_EQ(ended->exit_code, 9);
}

TEST(Program, SignalsSentToTraplineReachTheProgram) {
  for (const char* name : {"TERM", "HUP", "USR1", "USR2", "WINCH", "INT", "QUIT"}) {
    // The child signals only its parent, through a process that is not the child itself.
    const std::string script =
        std::string("trap 'exit 42' ") + name + "; { sleep 0.1; kill -" + name +
        " $PPID; } & i=0; while [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done; exit 1";
    EXPECT_EQ(exit_code(script), 42) << name;
  }
}

TEST(Program, StartsWithTheSignalsOfItsParent) {
  // 0 means that nothing is blocked; the ignored set must hold what was ignored here, and no more.
  const std::string script = "grep -E '^Sig(Blk|Ign)' /proc/self/status > ";
  const Temporary temporary;
  EXPECT_EQ(exit_code(script + (temporary / "plain").string()), 0);
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &ignore, &before);
  EXPECT_EQ(exit_code(script + (temporary / "nohup").string()), 0);
  struct sigaction after {};
  sigaction(SIGHUP, &before, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN) << "put back after the program's end";
  const auto ignored = [&](const std::string& name) {
    const std::string text = temporary.read(name);
    return std::stoull(text.substr(text.find("SigIgn:") + 7), nullptr, 16);
  };
  const std::string blocked = temporary.read("plain");
  EXPECT_EQ(std::stoull(blocked.substr(blocked.find("SigBlk:") + 7), nullptr, 16), 0ULL);
  EXPECT_EQ(ignored("nohup"), ignored("plain") | 1ULL);
  EXPECT_EQ(ignored("plain") & ((1ULL << (SIGINT - 1)) | (1ULL << (SIGQUIT - 1))), 0ULL);
}

TEST(Program, InheritsNoDescriptorOfOurs) {
  const Temporary temporary;
  const std::string script = "ls /proc/$$/fd > ";
  ASSERT_EQ(std::system((script + (temporary / "before").string()).c_str()), 0);
  EXPECT_EQ(exit_code(script + (temporary / "under").string()), 0);
  EXPECT_EQ(temporary.read("under"), temporary.read("before"));
}

}  // namespace
}  // namespace trapline
