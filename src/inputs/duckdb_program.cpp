#include "inputs/duckdb_program.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "inputs/damage.hpp"
#include "inputs/plugin.hpp"
#include "inputs/unnamed_file.hpp"

namespace trapline::inputs {
namespace {

namespace fs = std::filesystem;

// Private memory, as RLIMIT_DATA counts it: what the statements allow DuckDB, threads' stacks, Python.
constexpr std::uint64_t kMaxMemory = std::uint64_t{4} << 30U;
constexpr std::int64_t kMaxSilence = 60;           // seconds
constexpr std::int64_t kBetweenLooks = 5'000'000;  // nanoseconds
constexpr std::size_t kMaxWords = 4096;
constexpr int kNotThere = 127;  // as a shell says it

// Isolated (-I), so that neither the current folder nor PYTHONPATH can put another module in DuckDB's place.
// That leaves out what `pip install --user` installed, which is looked at last.
constexpr const char* kScript = R"(import sys
try:
    import duckdb
except ImportError:
    import site
    sys.path.append(site.getusersitepackages())
    try:
        import duckdb
    except ImportError:
        sys.exit(127)
try:
    connection = duckdb.connect(":memory:")
    for line in sys.stdin.buffer:
        connection.execute(line.decode())
except Exception as error:
    sys.stderr.write(f"{error}\n")
    sys.exit(1)
)";

// Of this process's environment only what finds a program's libraries and the user's own folder.
constexpr const char* kKept[] = {"PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR"};

bool is_program(const fs::path& path) {
  std::error_code problem;
  return fs::is_regular_file(path, problem) && ::access(path.c_str(), X_OK) == 0;
}

void add_python(const fs::path& path, std::vector<DuckDb>& found) {
  if (is_program(path)) found.push_back({path.string(), true});
}

// PREFIX/bin/python3.11 of PREFIX/lib/python3.11/site-packages/trapline/...
void add_own_python(std::vector<DuckDb>& found) {
  for (fs::path folder = own_folder(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (folder.filename() != "site-packages" && folder.filename() != "dist-packages") continue;
    const fs::path python = folder.parent_path();
    add_python(python.parent_path().parent_path() / "bin" / python.filename(), found);
    return;
  }
}

// Folders of PATH that depend on the current one are passed over.
std::string on_path(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    if (folder.starts_with('/') && is_program(fs::path(folder) / name))
      return (fs::path(folder) / name).string();
  }
  return "";
}

void limit(int what, std::uint64_t most) {
  struct rlimit now {};
  if (::getrlimit(static_cast<__rlimit_resource>(what), &now) != 0) return;
  now.rlim_cur = now.rlim_max = std::min<rlim_t>(most, now.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource>(what), &now);
}

struct Start {
  std::vector<const char*> words, environment;
  int input = -1, output = -1, words_out = -1;
  std::uint64_t most = 0;
  pid_t parent = 0;
};

// Behind the fork: only what POSIX calls async-signal-safe.
[[noreturn]] void become(const Start& start) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != start.parent) ::_exit(1);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGPIPE})
    ::signal(signal, SIG_DFL);
  // Ctrl-C is the parent's. A file that is full is an error of the writing.
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGXFSZ}) ::signal(signal, SIG_IGN);
  // To numbers beyond the three, and from there to their places.
  constexpr int kBeyond = STDERR_FILENO + 1;
  const int input = ::fcntl(start.input, F_DUPFD, kBeyond);
  const int output = ::fcntl(start.output, F_DUPFD, kBeyond);
  const int words = ::fcntl(start.words_out, F_DUPFD, kBeyond);
  if (input < 0 || output < 0 || words < 0) ::_exit(1);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(words, STDERR_FILENO);
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, kBeyond, ~0U, 0) != 0)
#endif
    for (int at = kBeyond; at < 4096; ++at) ::close(at);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_DATA, kMaxMemory);
  limit(RLIMIT_FSIZE, start.most);
  // The casts are those of execve's own, which changes nothing.
  ::execve(start.words[0], const_cast<char* const*>(start.words.data()),
           const_cast<char* const*>(start.environment.data()));
  ::_exit(kNotThere);
}

std::int64_t size_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 ? status.st_size : 0;
}

std::int64_t seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

// The first line that says something.
std::string first_words(int file) {
  std::array<char, kMaxWords> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  std::string_view rest(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") != line.npos && !line.starts_with("--")) return std::string(line);
  }
  return "";
}

std::string how_it_failed(int status, int words) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  const std::string said = first_words(words);
  if (said.empty()) return "ended with status " + std::to_string(WEXITSTATUS(status));
  return "says: " + in_quotes(said, 160);
}

// Whether it has ended by itself; if not, it is ended.
DuckDbRun wait_for(pid_t id, int output, int words, const Sink& sink) {
  std::int64_t size = 0, written = seconds();
  int status = 0;
  DuckDbRun early{DuckDbRun::End::kDone, ""};
  while (true) {
    const pid_t ended = ::waitpid(id, &status, WNOHANG);
    if (ended == id) break;
    if (ended < 0 && errno != EINTR) return {DuckDbRun::End::kFailed, "cannot be waited for"};
    if (const std::int64_t now = size_of(output); now != size) {
      size = now;
      written = seconds();
    }
    if (sink.stopped()) early.end = DuckDbRun::End::kStopped;
    if (seconds() - written > kMaxSilence)
      early = {DuckDbRun::End::kFailed,
               "took " + std::to_string(kMaxSilence) + " s without writing anything"};
    if (early.end != DuckDbRun::End::kDone) {
      ::kill(id, SIGKILL);
      while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
      }
      return early;
    }
    const timespec pause{0, kBetweenLooks};
    ::nanosleep(&pause, nullptr);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return early;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotThere) return {DuckDbRun::End::kMissing, ""};
  return {DuckDbRun::End::kFailed, how_it_failed(status, words)};
}

}  // namespace

std::vector<DuckDb> duckdb_programs() {
  std::vector<DuckDb> found;
  if (const char* named = std::getenv("TRAPLINE_DUCKDB"); named != nullptr && *named != '\0') {
    const fs::path path(named);
    if (path.is_absolute() && is_program(path))
      found.push_back({path.string(), path.filename().string().starts_with("python")});
    return found;
  }
  add_own_python(found);
  if (const std::string python = on_path("python3"); !python.empty()) add_python(python, found);
  if (const std::string program = on_path("duckdb"); !program.empty()) found.push_back({program, false});
  return found;
}

DuckDbRun run_duckdb(const DuckDb& program, const std::string& statements, int output, std::uint64_t most,
                     const Sink& sink) {
  const auto cannot = [] {
    return DuckDbRun{DuckDbRun::End::kFailed, "cannot be started: " + std::generic_category().message(errno)};
  };
  const std::string folder = temporary_folder();
  const Descriptor input(open_unnamed(folder)), words(open_unnamed(folder));
  if (input.number() < 0 || words.number() < 0) return cannot();
  // The command's own words about a statement would go where the statement writes.
  const std::string text = (program.python ? "" : ".output /dev/null\n") + statements;
  const auto size = static_cast<ssize_t>(text.size());
  if (::pwrite(input.number(), text.data(), text.size(), 0) != size) return cannot();
  if (::ftruncate(output, 0) != 0) return cannot();

  std::vector<std::string> kept{"LANG=C.UTF-8"};
  for (const char* name : kKept) {
    if (const char* value = std::getenv(name)) kept.push_back(name + ("=" + std::string(value)));
  }
  Start start;
  if (program.python) {
    start.words = {program.path.c_str(), "-I", "-c", kScript, nullptr};
  } else {  // without the user's ~/.duckdbrc
    start.words = {program.path.c_str(), "-init", "/dev/null", "-batch", "-bail", ":memory:", nullptr};
  }
  for (const std::string& one : kept) start.environment.push_back(one.c_str());
  start.environment.push_back(nullptr);
  start.input = input.number();
  start.output = output;
  start.words_out = words.number();
  start.most = most;
  start.parent = ::getpid();
  const pid_t id = ::fork();
  if (id < 0) return cannot();
  if (id == 0) become(start);
  return wait_for(id, output, words.number(), sink);
}

}  // namespace trapline::inputs
