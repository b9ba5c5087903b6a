#include "supervise/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <string>

namespace trapline::supervise {
namespace {

constexpr std::size_t kMaxEnvironment = std::size_t{1} << 20U;

std::string read_proc(pid_t pid, const char* file, std::size_t most) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  if (fd < 0) return text;
  char block[4096];
  ssize_t got = 0;
  while (text.size() < most && (got = ::read(fd, block, sizeof block)) > 0)
    text.append(block, static_cast<std::size_t>(got));
  ::close(fd);
  return text;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> out;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return out;
  while (const dirent* entry = ::readdir(folder)) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto [stop, error] = std::from_chars(entry->d_name, end, pid);
    if (error == std::errc() && stop == end && pid > 0) out.push_back(pid);
  }
  ::closedir(folder);
  return out;
}

// "PID (NAME) STATE PPID ...": the name may hold anything, so what follows its last bracket counts.
pid_t living_child_of(pid_t pid) {
  const std::string stat = read_proc(pid, "stat", 1024);
  const auto end = stat.rfind(')');
  if (end == std::string::npos || end + 4 >= stat.size() || stat[end + 2] == 'Z' || stat[end + 2] == 'X')
    return 0;
  pid_t parent = 0;
  std::from_chars(stat.data() + end + 4, stat.data() + stat.size(), parent);
  return parent;
}

bool is_one_of(pid_t pid, std::span<const pid_t> pids) { return std::ranges::find(pids, pid) != pids.end(); }

}  // namespace

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::vector<pid_t> descendants(pid_t root, std::span<const pid_t> except) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : all_processes()) {
    if (const pid_t parent = living_child_of(pid); parent > 0) children.emplace(parent, pid);
  }
  std::vector<pid_t> out;
  std::vector<pid_t> open{root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      if (is_one_of(child->second, except)) continue;
      out.push_back(child->second);
      open.push_back(child->second);
    }
  }
  return out;
}

void signal_all(std::span<const pid_t> pids, int signal) {
  for (const pid_t pid : pids) ::kill(pid, signal);
}

std::vector<pid_t> processes_with(std::string_view variable, std::span<const pid_t> except) {
  const std::string wanted = std::string(variable) + '\0';
  std::vector<pid_t> out;
  for (const pid_t pid : all_processes()) {
    if (is_one_of(pid, except)) continue;
    const std::string environment = read_proc(pid, "environ", kMaxEnvironment);
    if (environment.starts_with(wanted) || environment.find('\0' + wanted) != std::string::npos)
      out.push_back(pid);
  }
  return out;
}

}  // namespace trapline::supervise
