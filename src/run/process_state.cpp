#include "run/process_state.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace trapline {

namespace {

// The letter of /proc/PID/stat; 0 when there is no such process.
char state_of(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[512];
  const ssize_t got = ::read(fd, text, sizeof text);
  ::close(fd);
  if (got <= 0) return 0;
  const std::string_view stat(text, static_cast<std::size_t>(got));
  // "PID (NAME) STATE ...": the name may hold anything, so what follows its last bracket counts.
  const auto name_end = stat.rfind(')');
  return name_end != std::string_view::npos && name_end + 2 < stat.size() ? stat[name_end + 2] : '\0';
}

}  // namespace

bool is_stopped(pid_t pid) { return state_of(pid) == 'T'; }

bool is_running(pid_t pid) { return pid > 0 && state_of(pid) == 'R'; }

}  // namespace trapline
