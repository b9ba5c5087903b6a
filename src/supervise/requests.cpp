#include "supervise/requests.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "report/utf8.hpp"

namespace trapline::supervise {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSlot = 256;
constexpr std::size_t kMaxFile = kSlot * 1024;
constexpr std::size_t kMaxRequests = 4096;
constexpr std::size_t kMaxSummary = 2048;
constexpr std::string_view kPrefix = "inflight-";

pid_t pid_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(kPrefix)) return 0;
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), pid);
  return error == std::errc() && end == name.data() + name.size() ? pid : 0;
}

std::string read_file(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  std::string text;
  if (fd < 0) return text;
  struct stat state {};
  if (::fstat(fd, &state) == 0 && S_ISREG(state.st_mode)) {
    text.resize(std::min<std::size_t>(static_cast<std::size_t>(state.st_size), kMaxFile));
    const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  }
  ::close(fd);
  return text;
}

// "<fingerprint> <time> <id>", to the first NUL. False when the slot is free or makes no sense.
bool read_slot(std::string_view slot, RequestInFlight& out) {
  slot = slot.substr(0, slot.find('\0'));
  const auto first = slot.find(' ');
  if (first == 0 || first == std::string_view::npos) return false;
  const auto second = slot.find(' ', first + 1);
  if (second == std::string_view::npos) return false;
  const std::string_view fingerprint = slot.substr(0, first);
  if (!std::ranges::all_of(fingerprint, [](unsigned char c) { return std::isxdigit(c) != 0; })) return false;
  out.fingerprint = fingerprint;
  std::from_chars(slot.data() + first + 1, slot.data() + second, out.since);
  out.id = printable(slot.substr(second + 1));
  return true;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    if (pid_of(file->path()) > 0) out.push_back(file->path());
  }
  return out;
}

}  // namespace

std::vector<RequestInFlight> requests_in_flight(const fs::path& folder) {
  std::vector<RequestInFlight> out;
  for (const fs::path& file : files_in(folder)) {
    const std::string text = read_file(file);
    for (std::size_t at = 0; at + kSlot <= text.size() && out.size() < kMaxRequests; at += kSlot) {
      RequestInFlight request;
      request.pid = pid_of(file);
      if (read_slot(std::string_view(text).substr(at, kSlot), request)) out.push_back(std::move(request));
    }
  }
  std::ranges::stable_sort(out, {}, &RequestInFlight::since);
  return out;
}

void forget_requests_in_flight(const fs::path& folder, const std::vector<pid_t>& alive) {
  std::error_code ignored;
  for (const fs::path& file : files_in(folder)) {
    if (std::ranges::find(alive, pid_of(file)) == alive.end()) fs::remove(file, ignored);
  }
}

bool refuse(const fs::path& folder, const RequestInFlight& request, std::string_view code,
            std::string_view summary) {
  nlohmann::json line = {{"fingerprint", request.fingerprint},
                         {"request", request.id},
                         {"code", std::string(code)},
                         {"summary", printable(summary.substr(0, kMaxSummary))}};
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const int fd = ::open((folder / "refused.jsonl").c_str(),
                        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  const bool done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return done;
}

std::size_t count_refused(const fs::path& folder) {
  std::ifstream file(folder / "refused.jsonl");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

}  // namespace trapline::supervise
