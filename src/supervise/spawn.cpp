#include "supervise/spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "run/environment.hpp"
#include "run/find_program.hpp"

namespace trapline::supervise {
namespace {

constexpr int kFirstListening = 3;
constexpr std::string_view kListenPid = "LISTEN_PID=";

// Digits without a library: between fork and exec of a program with threads hardly anything is allowed.
void write_number(char* to, pid_t number) {
  char digits[16];
  int count = 0;
  for (; number > 0; number /= 10) digits[count++] = static_cast<char>('0' + number % 10);
  while (count > 0) *to++ = digits[--count];
  *to = '\0';
}

// What the child needs, made before the fork.
struct Image {
  const char* file;
  char* const* arguments;
  char* const* environment;
  char* listen_pid;            // where its own pid is written; nullptr: nowhere
  std::vector<int> listening;  // copies above all the numbers that they become
  int error_pipe;
};

[[noreturn]] void become(const SpawnRequest& request, const Image& image) {
  ::setpgid(0, 0);
  // All signals are blocked still, SIGTTOU too: that is what lets a background group take the terminal.
  if (request.takes_terminal) ::tcsetpgrp(STDIN_FILENO, ::getpid());
  if (request.output >= 0) ::dup2(request.output, STDOUT_FILENO);
  if (request.error >= 0) ::dup2(request.error, STDERR_FILENO);
  for (std::size_t i = 0; i < image.listening.size(); ++i)
    ::dup2(image.listening[i], kFirstListening + static_cast<int>(i));
  if (request.kept >= 0) ::fcntl(request.kept, F_SETFD, 0);
  if (image.listen_pid != nullptr) write_number(image.listen_pid, ::getpid());
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &request.mask, nullptr);
  ::execve(image.file, image.arguments, image.environment);
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(image.error_pipe, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

void Descriptor::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<pid_t> spawn(const SpawnRequest& request) {
  const std::string& name = request.arguments.front();
  const auto file = find_program(name, find_variable(request.environment, "PATH").value_or("/usr/bin:/bin"));
  if (!file) return file.error();

  std::vector<std::string> environment = request.environment;
  if (!request.listening.empty()) {
    environment.push_back(fmt::format("LISTEN_FDS={}", request.listening.size()));
    environment.push_back(std::string(kListenPid) + std::string(16, '0'));
  }
  std::vector<char*> arguments = exec_list(request.arguments);
  std::vector<char*> variables = exec_list(environment);
  Image image{file->c_str(), arguments.data(), variables.data(), nullptr, {}, -1};
  if (!request.listening.empty()) image.listen_pid = environment.back().data() + kListenPid.size();

  // Copies out of the way: what is to become descriptor 3 may lie at 4, and the other way round.
  std::vector<Descriptor> copies;
  const int above = kFirstListening + static_cast<int>(request.listening.size());
  for (const int fd : request.listening) {
    copies.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, above));
    if (!copies.back().is_open()) return cannot_start(name, errno);
    image.listening.push_back(copies.back().get());
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return cannot_start(name, errno);
  const Descriptor from_child(ends[0]);
  Descriptor to_parent(::fcntl(ends[1], F_DUPFD_CLOEXEC, above));
  ::close(ends[1]);
  if (!to_parent.is_open()) return cannot_start(name, errno);
  image.error_pipe = to_parent.get();

  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) become(request, image);
  const int fork_error = errno;
  if (pid > 0) ::setpgid(pid, pid);  // whoever of the two comes first
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return cannot_start(name, fork_error);

  to_parent.close();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(from_child.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof error)) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return cannot_start(name, error);
}

}  // namespace trapline::supervise
