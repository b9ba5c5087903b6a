#include "doctor/bounded.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "run/environment.hpp"
#include "run/find_program.hpp"

namespace trapline::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxOutput = std::size_t{8} << 10U;
constexpr std::size_t kMaxAnswer = std::size_t{64} << 10U;
constexpr int kPollMilliseconds = 50;

// The reading end of a pipe that a child writes to.
class Reader {
 public:
  Reader(int descriptor, std::size_t most) : descriptor_(descriptor), most_(most) {
    ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
  }
  ~Reader() { ::close(descriptor_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Takes what is there, and keeps the last bytes of it. False at the end.
  bool read() {
    std::array<char, 4096> piece{};
    while (true) {
      const ssize_t got = ::read(descriptor_, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno == EAGAIN;
      if (got == 0) return false;
      text_.append(piece.data(), static_cast<std::size_t>(got));
      if (text_.size() > most_) text_.erase(0, text_.size() - most_);
    }
  }
  void wait() {
    pollfd poll_set{descriptor_, POLLIN, 0};
    ::poll(&poll_set, 1, kPollMilliseconds);
  }
  std::string take() { return std::move(text_); }

 private:
  int descriptor_;
  std::size_t most_;
  std::string text_;
};

// Waits for the child; what it has left behind may hold the pipe, and is not waited for.
std::optional<int> wait_for(pid_t child, Reader& reader, double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  bool open = true;
  while (true) {
    if (open) {
      reader.wait();
      open = reader.read();
    } else {
      ::poll(nullptr, 0, kPollMilliseconds);
    }
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) {
      reader.read();
      return status;
    }
    if (Clock::now() >= deadline) {
      ::kill(-child, SIGKILL);
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      reader.read();
      return std::nullopt;
    }
  }
}

}  // namespace

Answer ask(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
           double seconds) {
  Answer answer;
  const auto program = find_program(arguments.front(), find_variable(environment, "PATH").value_or(""));
  if (!program) {
    answer.error = program.error().line();
    return answer;
  }
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    answer.error = "no pipe can be made";
    return answer;
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, pipe[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program->c_str(), &files, &attributes, exec_list(arguments).data(),
                                  exec_list(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  ::close(pipe[1]);
  Reader reader(pipe[0], kMaxOutput);
  if (error != 0) {
    answer.error = cannot_start(arguments.front(), error).line();
    return answer;
  }
  const auto status = wait_for(child, reader, seconds);
  answer.timed_out = !status;
  if (status) answer.ended = exit_status_of(*status);
  answer.output = reader.take();
  return answer;
}

std::optional<std::string> ask_child(const std::function<std::string()>& question, double seconds) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    // What a library prints is not for the user.
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, descriptor);
    const std::string text = question();
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t wrote = ::write(pipe[1], text.data() + done, text.size() - done);
      if (wrote <= 0) break;
      done += static_cast<std::size_t>(wrote);
    }
    ::_exit(0);
  }
  ::close(pipe[1]);
  Reader reader(pipe[0], kMaxAnswer);
  if (child < 0) return std::nullopt;
  const auto status = wait_for(child, reader, seconds);
  if (!status || exit_status_of(*status).exit_code != 0) return std::nullopt;
  return reader.take();
}

}  // namespace trapline::doctor
