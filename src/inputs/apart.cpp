#include "inputs/apart.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <limits>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "inputs/apart_messages.hpp"
#include "inputs/damage.hpp"
#include "inputs/unnamed_file.hpp"

namespace trapline::inputs {
namespace {

constexpr std::uint64_t kMaxMemory = std::uint64_t{1} << 30U;  // besides what this process has
// Computing time without a word: an element takes no such time, a structure that leads in a circle takes any.
constexpr std::int64_t kMaxSilence = 30;  // seconds
constexpr int kBetweenLooks = 200;        // milliseconds
constexpr std::string_view kInsteadOfIt =
    "copy the file again; if others can read it, write its arrays as .npy";

// Private memory that can be written to, as RLIMIT_DATA counts it.
std::uint64_t data_bytes() {
  constexpr int kDataColumn = 5;  // proc(5), statm
  std::array<char, 256> text{};
  const Descriptor file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  if (file.number() < 0 || ::read(file.number(), text.data(), text.size() - 1) <= 0) return 0;
  const char* at = text.data();
  for (int i = 0; i < kDataColumn && at != nullptr; ++i) {
    at = std::strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10) * page;
}

void limit(int what, std::uint64_t most) {
  struct rlimit now {};
  if (::getrlimit(static_cast<__rlimit_resource>(what), &now) != 0) return;
  now.rlim_cur = now.rlim_max = std::min<rlim_t>(most, now.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource>(what), &now);
}

// Files that other children of this process wait on must not stay open here, nor anything else.
void close_all_but(int kept) {
  const auto close = [](int from, int to) {
    if (from > to) return;
#ifdef SYS_close_range
    if (::syscall(SYS_close_range, from, to, 0) == 0) return;
#endif
    constexpr int kEnough = 4096;
    for (int at = from; at <= std::min(to, kEnough); ++at) ::close(at);
  };
  close(STDERR_FILENO + 1, kept - 1);
  close(std::max(kept, STDERR_FILENO) + 1, std::numeric_limits<int>::max());
}

// Nothing from here on may take a lock that another thread held at the fork, but malloc's, which glibc frees.
[[noreturn]] void run_child(int socket, pid_t parent, const std::string& path,
                            const std::function<std::optional<Error>(Sink&)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // This process's handlers are for its own memory; Ctrl-C is the parent's.
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGPIPE, SIGXFSZ})
    ::signal(signal, SIG_DFL);
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) ::signal(signal, SIG_IGN);
  limit(RLIMIT_DATA, data_bytes() + kMaxMemory);
  close_all_but(socket);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, 0);
  SendingSink sink(socket);
  try {
    sink.end(body(sink));
  } catch (const std::bad_alloc&) {
    sink.end(unreadable(path, "it claims more than the 1 GiB of memory that reading it may take"));
  } catch (const std::exception& error) {
    sink.end(unreadable(path, in_quotes(error.what())));
  }
  ::_exit(0);  // no destructor: they are the parent's
}

class Child {
 public:
  Child(pid_t id, int socket) : id_(id), socket_(socket) {}
  ~Child() { status(true); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  enum class Got : std::uint8_t { kAll, kEnd, kStopped, kSilent };
  Got receive(void* to, std::size_t size, const Sink& sink) {
    auto* at = static_cast<char*>(to);
    const std::int64_t began = seconds();
    while (size > 0) {
      pollfd wait{socket_, POLLIN, 0};
      if (::poll(&wait, 1, kBetweenLooks) == 0) {
        if (sink.stopped()) return Got::kStopped;
        if (seconds() - began > kMaxSilence) return Got::kSilent;
        continue;
      }
      const ssize_t got = ::read(socket_, at, size);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Got::kEnd;
      at += got;
      size -= static_cast<std::size_t>(got);
    }
    return Got::kAll;
  }
  // How it ended, as waitpid() has it; `now`: it is ended.
  int status(bool now) {
    if (id_ > 0) {
      if (now) ::kill(id_, SIGKILL);
      while (::waitpid(id_, &status_, 0) < 0 && errno == EINTR) {
      }
      id_ = -1;
    }
    return status_;
  }

 private:
  // Of computing, not of waiting for a slow disk.
  std::int64_t seconds() const {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(id_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
    return time.tv_sec;
  }

  pid_t id_;
  int socket_;
  int status_ = 0;
};

std::string how_it_died(int status) {
  if (WIFSIGNALED(status)) {
    switch (WTERMSIG(status)) {
      case SIGSEGV:
        return "crashed on it (SIGSEGV)";
      case SIGBUS:
        return "crashed on it (SIGBUS)";
      case SIGABRT:
        return "gave up on it (SIGABRT)";
      case SIGFPE:
        return "crashed on it (SIGFPE)";
      default:
        return "was ended by signal " + std::to_string(WTERMSIG(status));
    }
  }
  return "ended on it with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::optional<Error> read_apart(const std::string& path, const std::string& library, Sink& sink,
                                const std::function<std::optional<Error>(Sink&)>& body) {
  const auto cannot = [&] {
    return unreadable(path, "no process for it can be started: " + std::generic_category().message(errno),
                      "end other programs, or raise `ulimit -u` and `ulimit -n`");
  };
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return cannot();
  const Descriptor own(ends[0]);
  Descriptor its(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t id = ::fork();
  if (id < 0) return cannot();
  if (id == 0) run_child(its.number(), parent, path, body);
  its.close();
  Child child(id, own.number());
  Receiver receiver(sink);
  const auto broken = [&](const std::string& why) {
    return unreadable(path, library + " " + why + ": the file is damaged, or " + library + " has a fault",
                      kInsteadOfIt);
  };
  std::vector<std::uint64_t> buffer;
  while (!receiver.ended()) {
    std::int64_t size = 0;
    Child::Got got = child.receive(&size, sizeof size, sink);
    if (got == Child::Got::kAll) {
      if (size < 0 || static_cast<std::uint64_t>(size) > kMaxMessage) return broken("was led astray by it");
      buffer.resize((static_cast<std::size_t>(size) + 7) / 8);
      got = child.receive(buffer.data(), static_cast<std::size_t>(size), sink);
    }
    if (got == Child::Got::kStopped) return std::nullopt;
    if (got == Child::Got::kSilent)
      return broken("took " + std::to_string(kMaxSilence) + " s without reading anything");
    if (got == Child::Got::kEnd) return broken(how_it_died(child.status(false)));
    const std::optional<bool> answer =
        receiver.take({reinterpret_cast<const std::byte*>(buffer.data()), static_cast<std::size_t>(size)});
    if (!answer) return broken("was led astray by it");
    if (sink.stopped()) return std::nullopt;
    const auto kind = static_cast<Message::Kind>(buffer[0]);
    if (kind != Message::Kind::kBegin && kind != Message::Kind::kPiece) continue;
    // Where it has just died, that is said by the next receive(), not by SIGPIPE.
    const char said = *answer ? 1 : 0;
    while (::send(own.number(), &said, 1, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
  }
  return receiver.problem();
}

}  // namespace trapline::inputs
