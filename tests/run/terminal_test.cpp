// The program on a real terminal: a pseudo-terminal whose other end this test holds. Trapline's part runs in
// a forked process whose controlling terminal it is, as under a shell.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "run/environment.hpp"
#include "run/program.hpp"

namespace trapline {
namespace {

int run_directly(const std::vector<std::string>& arguments) {
  const auto ended = run_program(arguments, current_environment());
  const std::string line = "exit code " + std::to_string(ended ? ended->exit_code : -1) + "\n";
  [[maybe_unused]] const auto done = ::write(STDERR_FILENO, line.data(), line.size());
  return 0;
}

class Terminal {
 public:
  using Shell = int (*)(const std::vector<std::string>& arguments);

  explicit Terminal(const std::string& script) : Terminal(run_directly, script) {}
  Terminal(Shell shell, const std::string& script) {
    winsize size{33, 123, 0, 0};
    pid_ = ::forkpty(&master_, nullptr, nullptr, &size);
    if (pid_ == 0) ::_exit(shell({"sh", "-c", script}));
  }
  ~Terminal() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys) const {
    ASSERT_EQ(::write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void resize(winsize size) const { ASSERT_EQ(::ioctl(master_, TIOCSWINSZ, &size), 0); }

  // Reads until `text` was seen, or the terminal was closed, or ten seconds have passed without output.
  bool wait_for(const std::string& text) {
    while (output_.find(text) == std::string::npos) {
      pollfd ready{master_, POLLIN, 0};
      if (::poll(&ready, 1, 10'000) <= 0) return false;
      std::array<char, 4096> buffer{};
      const ssize_t got = ::read(master_, buffer.data(), buffer.size());
      if (got <= 0) return false;
      output_.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return true;
  }
  const std::string& output() const { return output_; }

 private:
  int master_ = -1;
  pid_t pid_ = -1;
  std::string output_;
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(OnATerminal, TheProgramHasIt) {
  Terminal terminal("test -t 0 && test -t 1 && test -t 2 && echo all three; stty size; exit 5");
  EXPECT_TRUE(terminal.wait_for("exit code 5")) << terminal.output();
  EXPECT_NE(terminal.output().find("all three"), std::string::npos) << terminal.output();
  EXPECT_NE(terminal.output().find("33 123"), std::string::npos) << terminal.output();
}

TEST(OnATerminal, TheProgramReadsWhatIsTyped) {
  Terminal terminal("read line; echo got:$line");
  terminal.type("hello\n");
  EXPECT_TRUE(terminal.wait_for("got:hello")) << terminal.output();
  EXPECT_TRUE(terminal.wait_for("exit code 0")) << terminal.output();
}

TEST(OnATerminal, ANewWindowSizeIsSeen) {
  Terminal terminal("trap 'stty size; exit 6' WINCH; echo ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(terminal.wait_for("ready"));
  terminal.resize({40, 90, 0, 0});
  EXPECT_TRUE(terminal.wait_for("exit code 6")) << terminal.output();
  EXPECT_EQ(count(terminal.output(), "40 90"), 1U) << terminal.output();
}

TEST(OnATerminal, CtrlCReachesTheProgramOnceAndItsOwnCodeIsReported) {
  Terminal terminal("trap 'echo caught' INT; echo ready; sleep 1; sleep 0.3; exit 7");
  ASSERT_TRUE(terminal.wait_for("ready"));
  terminal.type("\x03");
  EXPECT_TRUE(terminal.wait_for("exit code 7")) << terminal.output();
  EXPECT_EQ(count(terminal.output(), "caught"), 1U) << terminal.output();
}

TEST(OnATerminal, CtrlCThatKillsTheProgramIs130) {
  Terminal terminal("echo ready; exec sleep 30");
  ASSERT_TRUE(terminal.wait_for("ready"));
  terminal.type("\x03");
  EXPECT_TRUE(terminal.wait_for("exit code 130")) << terminal.output();
}

TEST(OnATerminal, CtrlBackslashReachesTheProgram) {
  Terminal terminal("trap 'exit 8' QUIT; echo ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(terminal.wait_for("ready"));
  terminal.type("\x1c");
  EXPECT_TRUE(terminal.wait_for("exit code 8")) << terminal.output();
}

// A shell with job control: puts trapline into a foreground group of its own, says when it has stopped, and
// brings it back as `fg` does. (A terminal's first group is orphaned; the kernel does not stop such a one.)
int run_as_job(const std::vector<std::string>& arguments) {
  ::signal(SIGTTOU, SIG_IGN);
  const pid_t job = ::fork();
  if (job == 0) {
    ::setpgid(0, 0);
    ::tcsetpgrp(STDIN_FILENO, ::getpid());
    ::signal(SIGTTOU, SIG_DFL);
    const auto ended = run_program(arguments, current_environment());
    ::_exit(ended ? ended->exit_code : 99);
  }
  ::setpgid(job, job);
  ::tcsetpgrp(STDIN_FILENO, job);
  int stops = 0;
  int status = 0;
  while (::waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
    ++stops;
    const std::string line = "job stopped\n";
    [[maybe_unused]] const auto done = ::write(STDERR_FILENO, line.data(), line.size());
    ::usleep(100'000);
    ::kill(-job, SIGCONT);
  }
  const std::string line =
      std::to_string(stops) + " stops, exit code " + std::to_string(WEXITSTATUS(status)) + "\n";
  [[maybe_unused]] const auto done = ::write(STDERR_FILENO, line.data(), line.size());
  return 0;
}

TEST(OnATerminal, CtrlZStopsBothAndForegroundGoesOn) {
  Terminal terminal(run_as_job, "echo ready; sleep 0.9; echo went on; exit 9");
  ASSERT_TRUE(terminal.wait_for("ready"));
  // A child of vfork that is stopped before it has become `sleep` holds up its shell, under Trapline or not.
  ::usleep(300'000);
  terminal.type("\x1a");
  EXPECT_TRUE(terminal.wait_for("1 stops, exit code 9")) << terminal.output();
  EXPECT_EQ(count(terminal.output(), "went on"), 1U) << terminal.output();
}

TEST(OnATerminal, StopsWithAProgramThatStopsItself) {
  Terminal terminal(run_as_job, "kill -TSTP $$; echo went on; exit 9");
  EXPECT_TRUE(terminal.wait_for("1 stops, exit code 9")) << terminal.output();
  EXPECT_EQ(count(terminal.output(), "went on"), 1U) << terminal.output();
}

}  // namespace
}  // namespace trapline
