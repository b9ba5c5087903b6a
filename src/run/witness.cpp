#include "run/witness.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "run/process_state.hpp"

namespace trapline {

// What Trapline tells its witness; to a question the answer is one byte, 0 or 1.
struct WitnessLine {
  enum class Kind : int { kQuestion, kProgram, kStopping, kAwake } kind;
  int signal = 0;
  pid_t pid = 0;  // the sender in question, or the program
  int code = 0;
  long long at = 0;
};

namespace {

constexpr int kAnswerMs = 2000;     // a witness that somebody stopped does not answer
constexpr int kLookMs = 250;        // between looks whether Trapline was stopped
constexpr int kLookStoppedMs = 50;  // and whether the program goes on
// One that the witness got first may be read by Trapline so much later, on a busy machine.
constexpr long long kLatestMs = 500;

struct Seen {
  int signal = 0;
  pid_t sender = 0;
  int code = 0;
  long long at = 0;
  bool answered = false;  // Trapline has asked about it
};

class Process {
 public:
  Process(int line, int signals, pid_t tool) : line_(line), signals_(signals), tool_(tool) {}

  [[noreturn]] void live() {
    while (true) {
      std::array<pollfd, 2> ready{pollfd{line_, POLLIN, 0}, pollfd{signals_, POLLIN, 0}};
      ::poll(ready.data(), ready.size(), along_ ? kLookStoppedMs : kLookMs);
      take_signals();
      if (ready[0].revents != 0) hear();
      look();
    }
  }

 private:
  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      seen_[next_] = {static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid), info.ssi_code,
                      monotonic_ms(), false};
      next_ = (next_ + 1) % seen_.size();
    }
  }

  void hear() {
    WitnessLine said{};
    const ssize_t got = ::recv(line_, &said, sizeof said, MSG_DONTWAIT);
    if (got == 0) ::_exit(0);
    if (got != static_cast<ssize_t>(sizeof said)) return;
    switch (said.kind) {
      case WitnessLine::Kind::kQuestion: {
        take_signals();  // what was sent before the question is there, whoever ran first
        const char answer = saw(said) ? 1 : 0;
        ::send(line_, &answer, 1, MSG_NOSIGNAL);
        break;
      }
      case WitnessLine::Kind::kProgram:
        program_ = said.pid;
        along_ = false;
        break;
      case WitnessLine::Kind::kStopping:
        along_ = true;
        break;
      case WitnessLine::Kind::kAwake:
        along_ = false;
        break;
    }
  }

  // Each signal that reached both is here once for each time that Trapline read it, unless several had become
  // one before this process read them: then Trapline's came before.
  bool saw(const WitnessLine& asked) {
    bool covered = false;
    for (Seen& one : seen_) {
      if (one.signal != asked.signal || one.sender != asked.pid || one.code != asked.code) continue;
      if (!one.answered && one.at >= asked.at - kLatestMs) {
        one.answered = true;
        return true;
      }
      covered = covered || (one.answered && one.at >= asked.at);
    }
    return covered;
  }

  void look() {
    if (program_ == 0 || !is_stopped(tool_)) return;
    if (!along_) {
      ::kill(program_, SIGSTOP);
    } else if (!is_stopped(program_)) {
      along_ = false;
      ::kill(tool_, SIGCONT);
    }
  }

  int line_;
  int signals_;
  pid_t tool_;
  pid_t program_ = 0;
  bool along_ = false;  // Trapline has stopped because the program has
  std::array<Seen, 256> seen_{};
  std::size_t next_ = 0;
};

// Nothing of the terminal or of a pipe that somebody reads to its end is kept open.
void keep_only(int line, int signals) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fd != line && fd != signals) ::dup2(nothing, fd);
  }
  const int low = line < signals ? line : signals;
  const int high = line < signals ? signals : line;
  if (low > 3) ::close_range(3, static_cast<unsigned>(low) - 1, 0);
  if (high > low + 1) ::close_range(static_cast<unsigned>(low) + 1, static_cast<unsigned>(high) - 1, 0);
  ::close_range(static_cast<unsigned>(high < 3 ? 2 : high) + 1, ~0U, 0);
}

[[noreturn]] void be_witness(int line, const sigset_t& watched, pid_t tool) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  ::prctl(PR_SET_NAME, "trapline-watch", 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != tool) ::_exit(0);  // it had died before
  const int signals = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) ::_exit(1);
  keep_only(line, signals);
  Process(line, signals, tool).live();
}

}  // namespace

long long monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

Witness::Witness(const sigset_t& watched) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  const pid_t tool = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(ends[0]);
    be_witness(ends[1], watched, tool);
  }
  ::close(ends[1]);
  line_ = ends[0];
  if (pid_ < 0) lose();
}

Witness::~Witness() {
  const pid_t pid = pid_;
  lose();
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Witness::lose() {
  if (line_ >= 0) ::close(line_);
  line_ = -1;
}

bool Witness::tell(const WitnessLine& line) {
  if (line_ < 0) return false;
  if (::send(line_, &line, sizeof line, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof line))
    return true;
  lose();
  return false;
}

bool Witness::saw(int signal, pid_t sender, int code, long long at) {
  if (tell({WitnessLine::Kind::kQuestion, signal, sender, code, at})) {
    pollfd ready{line_, POLLIN, 0};
    char answer = 0;
    if (::poll(&ready, 1, kAnswerMs) == 1 && ::recv(line_, &answer, 1, MSG_DONTWAIT) == 1) return answer != 0;
    lose();  // a late answer would be taken for that of the next question
  }
  return code > 0;
}

void Witness::watch(pid_t program) { tell({WitnessLine::Kind::kProgram, 0, program, 0, 0}); }

void Witness::stop_along() {
  // Without anybody who wakes it, Trapline must not sleep: the shell would wait for ever.
  if (!tell({WitnessLine::Kind::kStopping})) return;
  ::kill(::getpid(), SIGSTOP);
  tell({WitnessLine::Kind::kAwake});
}

}  // namespace trapline
