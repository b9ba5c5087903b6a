#include "supervise/last_watch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "supervise/tree.hpp"

namespace trapline::supervise {
namespace {

constexpr double kStep = 0.05;  // seconds between looks

void sleep_for(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  timespec time{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  while (::nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

// Nothing of the terminal, the log, the sockets or a pipe that somebody reads to its end is kept open.
int keep_only(int line) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  constexpr int kLine = 3;
  if (line != kLine) ::dup2(line, kLine);
  ::close_range(kLine + 1, ~0U, 0);
  return kLine;
}

[[noreturn]] void watch(int line, const std::string& variable, double grace) {
  ::setsid();  // what is sent to the terminal's or the supervisor's group is not meant for it
  ::prctl(PR_SET_NAME, "trapline-watch", 0, 0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  char word = 0;
  ssize_t got = 0;
  do {
    got = ::read(line, &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1) ::_exit(0);
  const std::array<pid_t, 1> self{::getpid()};
  signal_all(processes_with(variable, self), SIGTERM);
  const int looks = static_cast<int>(grace / kStep);
  for (int look = 0; look < looks; ++look) {
    if (processes_with(variable, self).empty()) ::_exit(0);
    sleep_for(kStep);
  }
  // What forks while it is looked for is found at the next look; a program cannot do so for ever unnoticed.
  for (int look = 0; look < 200; ++look) {
    const auto left = processes_with(variable, self);
    if (left.empty()) break;
    signal_all(left, SIGSTOP);
    signal_all(left, SIGKILL);
    sleep_for(kStep);
  }
  ::_exit(0);
}

}  // namespace

LastWatch::LastWatch(const std::string& variable, double grace) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  line_ = Descriptor(ends[1]);
  Descriptor far_end(ends[0]);
  pid_ = ::fork();
  if (pid_ == 0) {
    line_.close();
    watch(keep_only(far_end.get()), variable, grace);
  }
}

LastWatch::~LastWatch() {
  if (pid_ <= 0) return;
  const char well = 1;
  [[maybe_unused]] const auto written = ::write(line_.get(), &well, 1);
  line_.close();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace trapline::supervise
