#include "run/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "run/environment.hpp"
#include "run/find_program.hpp"

namespace trapline {
namespace {

// Blocks all signals while it lives.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

// Between fork and exec. The program is killed with Trapline: who kills the one means the other, and nobody
// else would find it. (The kernel lets go of this where the program's file is set-uid.)
[[noreturn]] void become(const char* file, char* const* arguments, char* const* environment,
                         const sigset_t& mask, pid_t tool, int error_pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() == tool) {
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    ::execve(file, arguments, environment);
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(error_pipe, &error, sizeof error);
  }
  ::_exit(127);
}

// Its pid, or the number of the error.
struct Started {
  pid_t pid = 0;
  int error = 0;
};

Started start_program(const char* file, char* const* arguments, char* const* environment,
                      const sigset_t& mask) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {0, errno};
  const pid_t tool = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(file, arguments, environment, mask, tool, ends[1]);
  int error = pid < 0 ? errno : 0;
  ::close(ends[1]);
  if (pid > 0) {
    while (::read(ends[0], &error, sizeof error) < 0 && errno == EINTR) {
    }
    if (error != 0) ::waitpid(pid, nullptr, 0);
  }
  ::close(ends[0]);
  return {pid, error};
}

// Whoever ignores SIGCHLD is not told how its children ended: the kernel drops the exit code. Some launchers
// leave it ignored.
void keep_exit_codes() {
  struct sigaction action {};
  sigaction(SIGCHLD, nullptr, &action);
  if (action.sa_handler == SIG_IGN) ::signal(SIGCHLD, SIG_DFL);
}

}  // namespace

Child::Child(std::vector<std::string> arguments, std::vector<std::string> environment,
             SignalForwarding* forwarding)
    : arguments_(std::move(arguments)), environment_(std::move(environment)), forwarding_(forwarding) {}

Child::~Child() {
  if (signal(SIGKILL)) collect();
}

std::optional<Error> Child::start() {
  const std::string& name = arguments_.front();
  if (is_running()) return Error{"cannot start '" + name + "'", "it is running", "wait for its end first"};
  status_.reset();
  const auto file = find_program(name, find_variable(environment_, "PATH").value_or("/usr/bin:/bin"));
  if (!file) return file.error();
  const std::vector<char*> argv = exec_list(arguments_);
  const std::vector<char*> envp = exec_list(environment_);
  keep_exit_codes();
  // A signal that comes now waits until it is known whom to pass it to.
  const SignalsBlocked blocked;
  const Started started =
      start_program(file->c_str(), argv.data(), envp.data(),
                    forwarding_ == nullptr ? blocked.before() : forwarding_->mask_before());
  if (started.error != 0) return cannot_start(name, started.error);
  pid_ = started.pid;
  if (forwarding_ != nullptr) forwarding_->set_target(pid_);
  return std::nullopt;
}

std::optional<ExitStatus> Child::poll() {
  while (is_running()) {
    siginfo_t info{};
    // The exit is seen first and collected later: until then the pid cannot be another process's.
    const int found = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOWAIT | WNOHANG);
    if (found != 0 && errno == EINTR) continue;
    if (found == 0 && info.si_pid == 0) return std::nullopt;
    if (found == 0 && info.si_code == CLD_STOPPED) {
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG);  // collect the stop itself
      // The shell gives its prompt back when Trapline has stopped, and has continued both when it goes on.
      if (forwarding_ != nullptr) forwarding_->stop_along();
    } else {
      collect();
    }
  }
  return status_;
}

std::optional<ExitStatus> Child::wait() {
  while (!poll() && is_running()) {
    if (forwarding_ != nullptr) {
      forwarding_->pass_on();
    } else {
      siginfo_t info{};
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    }
  }
  return status_;
}

bool Child::signal(int number) const {
  // Until it was collected its pid cannot be another process's.
  return is_running() && ::kill(pid_, number) == 0;
}

void Child::collect() {
  if (forwarding_ != nullptr) forwarding_->set_target(0);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  status_ = exit_status_of(status);
}

}  // namespace trapline
