#include "run/program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "run/environment.hpp"

namespace trapline {
namespace {

constexpr auto kForwarded =
    std::to_array<int>({SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH});

// A signal handler reads it, so it is the one variable of this room with static storage.
std::atomic<pid_t> g_program{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

// What the terminal sends (SI_KERNEL) goes to the whole foreground group, so the program has it already. What
// a process sends to Trapline's pid is meant for the program, unless the program sent it itself.
void forward(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const pid_t program = g_program.load(std::memory_order_relaxed);
  if (info->si_code <= 0 && program > 0 && info->si_pid != program) ::kill(program, signal);
  errno = saved;
}

// Forwards signals while it lives, then puts everything back.
class SignalScope {
 public:
  SignalScope() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask_);
    for (std::size_t i = 0; i < kForwarded.size(); ++i) {
      sigaction(kForwarded[i], nullptr, &before_[i]);
      // What was ignored at the start stays so: nohup, and jobs that a script starts with `&`.
      if (before_[i].sa_handler == SIG_IGN) continue;
      struct sigaction action {};
      action.sa_sigaction = forward;
      action.sa_flags = SA_SIGINFO | SA_RESTART;
      sigfillset(&action.sa_mask);
      sigaction(kForwarded[i], &action, nullptr);
    }
  }
  ~SignalScope() { restore(); }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  // Async-signal-safe: the forked child calls it too.
  void restore() const {
    for (std::size_t i = 0; i < kForwarded.size(); ++i) sigaction(kForwarded[i], &before_[i], nullptr);
    unblock();
  }
  void unblock() const { sigprocmask(SIG_SETMASK, &mask_, nullptr); }

 private:
  sigset_t mask_{};
  std::array<struct sigaction, kForwarded.size()> before_{};
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

Error cannot_start(const std::string& name, const std::string& why, const std::string& fix) {
  return {"cannot start '" + name + "'", why, fix};
}

Error cannot_start(const std::string& name, int error) {
  switch (error) {
    case ENOEXEC:
      return cannot_start(name, "not a program that this machine can run",
                          "name its interpreter, e.g. trapline run -- python " + name);
    case EACCES:
      return cannot_start(name, "permission denied", "check the file's permissions (chmod +x)");
    case ENOENT:
      return cannot_start(name, "the interpreter that its first line names is missing", "check the #! line");
    default:
      return cannot_start(name, std::strerror(error), "check the command");
  }
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

Ended wait_for(pid_t program) {
  siginfo_t info{};
  for (;;) {
    // The exit is seen first and collected later: until then the pid cannot be another process's.
    if (waitid(P_PID, static_cast<id_t>(program), &info, WEXITED | WSTOPPED | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) break;
    const int signal = info.si_status;
    waitid(P_PID, static_cast<id_t>(program), &info, WSTOPPED | WNOHANG);  // collect the stop itself
    stop_along(program, signal);
  }
  g_program.store(0, std::memory_order_relaxed);
  int status = 0;
  while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  Ended ended;
  if (WIFSIGNALED(status)) {
    ended.signal = WTERMSIG(status);
    ended.exit_code = 128 + ended.signal;
    ended.core_dumped = WCOREDUMP(status);
  } else {
    ended.exit_code = WEXITSTATUS(status);
  }
  return ended;
}

}  // namespace

Result<std::string> find_program(const std::string& name, std::string_view path) {
  const auto is_program = [](const std::string& file, struct stat& state) {
    return ::stat(file.c_str(), &state) == 0 && S_ISREG(state.st_mode) && ::access(file.c_str(), X_OK) == 0;
  };
  struct stat state {};
  if (name.find('/') != std::string::npos) {
    if (is_program(name, state)) return name;
    if (::stat(name.c_str(), &state) != 0) {
      return cannot_start(name, std::strerror(errno), "check the path");
    }
    if (S_ISDIR(state.st_mode)) return cannot_start(name, "it is a folder", "name the program in it");
    return cannot_start(name, "it is not executable",
                        "chmod +x it, or name its interpreter, e.g. trapline run -- python " + name);
  }
  for (std::size_t begin = 0; !name.empty() && begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder(path.substr(begin, end - begin));
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(file, state)) return file;
    begin = end + 1;
  }
  const bool is_here = ::stat(name.c_str(), &state) == 0;
  return cannot_start(
      name, "not found on PATH",
      is_here ? "for the file in this folder write trapline run -- python " + name : "check the spelling");
}

Result<Ended> run_program(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment) {
  const auto file =
      find_program(arguments.front(), find_variable(environment, "PATH").value_or("/usr/bin:/bin"));
  if (!file) return file.error();
  std::vector<char*> argv = pointers(arguments);
  std::vector<char*> envp = pointers(environment);

  // The child reports a failed exec through this pipe, which a successful exec closes.
  std::array<int, 2> channel{};
  if (::pipe2(channel.data(), O_CLOEXEC) != 0) return cannot_start(arguments.front(), errno);
  const SignalScope signals;
  const pid_t program = ::fork();
  if (program == 0) {
    signals.restore();
    ::execve(file->c_str(), argv.data(), envp.data());
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(channel[1], &error, sizeof error);
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(channel[1]);
  if (program < 0) {
    ::close(channel[0]);
    return cannot_start(arguments.front(), fork_error);
  }
  g_program.store(program, std::memory_order_relaxed);
  signals.unblock();
  int exec_error = 0;
  ssize_t got = 0;
  while ((got = ::read(channel[0], &exec_error, sizeof exec_error)) < 0 && errno == EINTR) {
  }
  ::close(channel[0]);
  const Ended ended = wait_for(program);
  if (got == static_cast<ssize_t>(sizeof exec_error)) return cannot_start(arguments.front(), exec_error);
  return ended;
}

}  // namespace trapline
