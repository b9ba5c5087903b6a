#include "run/child.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

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

// The mask is the only thing to be set: exec itself puts signals with a handler back to their default, and
// leaves those that are ignored.
class SpawnAttributes {
 public:
  explicit SpawnAttributes(const sigset_t& mask) {
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &mask);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

// Whoever ignores SIGCHLD is not told how its children ended: the kernel drops the exit code. Some launchers
// leave it ignored.
void keep_exit_codes() {
  struct sigaction action {};
  sigaction(SIGCHLD, nullptr, &action);
  if (action.sa_handler == SIG_IGN) ::signal(SIGCHLD, SIG_DFL);
}

bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  return name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] == 'T';
}

// A program that stops itself only (`less` on Ctrl-Z) must still give the shell its prompt back, so Trapline
// stops with it. After Ctrl-Z of the terminal both were stopped and continued together: nothing to do then.
void stop_along(pid_t program, int signal) {
  if (signal == SIGSTOP || !is_stopped(program)) return;
  ::kill(::getpid(), SIGSTOP);
  ::kill(program, SIGCONT);
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
  const SpawnAttributes attributes(blocked.before());
  pid_t pid = 0;
  if (const int error =
          ::posix_spawn(&pid, file->c_str(), nullptr, attributes.get(), argv.data(), envp.data());
      error != 0) {
    return cannot_start(name, error);
  }
  pid_ = pid;
  if (forwarding_ != nullptr) forwarding_->set_target(pid_);
  return std::nullopt;
}

std::optional<ExitStatus> Child::poll() { return watch(WNOHANG); }

std::optional<ExitStatus> Child::wait() { return watch(0); }

bool Child::signal(int number) const {
  // Until it was collected its pid cannot be another process's.
  return is_running() && ::kill(pid_, number) == 0;
}

std::optional<ExitStatus> Child::watch(int options) {
  while (is_running()) {
    siginfo_t info{};
    // The exit is seen first and collected later: until then the pid cannot be another process's.
    const int found = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOWAIT | options);
    if (found != 0 && errno == EINTR) continue;
    if (found == 0 && info.si_pid == 0) return std::nullopt;
    if (found == 0 && info.si_code == CLD_STOPPED) {
      const int signal = info.si_status;
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG);  // collect the stop itself
      stop_along(pid_, signal);
    } else {
      collect();
    }
  }
  return status_;
}

void Child::collect() {
  if (forwarding_ != nullptr) {
    const SignalsBlocked blocked;
    forwarding_->set_target(0);
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  status_ = exit_status_of(status);
}

}  // namespace trapline
