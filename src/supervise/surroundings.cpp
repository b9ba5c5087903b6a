#include "supervise/surroundings.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "report/utf8.hpp"
#include "supervise/spawn.hpp"

namespace trapline::supervise {
namespace {

constexpr std::size_t kMaxMessage = 4096;  // what Kubernetes keeps of a termination message

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void write_file(const std::string& path, std::string_view text, int flags) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags, 0644));
  if (!file.is_open()) return;
  [[maybe_unused]] const auto written = ::write(file.get(), text.data(), text.size());
}

}  // namespace

Systemd::Systemd() : path_(variable("NOTIFY_SOCKET")) {
  const std::string microseconds = variable("WATCHDOG_USEC");
  const std::string pid = variable("WATCHDOG_PID");
  double value = 0;
  if (!path_.empty() &&
      std::from_chars(microseconds.data(), microseconds.data() + microseconds.size(), value).ec ==
          std::errc() &&
      value > 0 && (pid.empty() || pid == std::to_string(::getpid())))
    watchdog_ = value / 1e6 / 2;
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
}

void Systemd::send(const std::string& text) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.empty() || path_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // Linux's abstract names
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size());
  ::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
           size);
}

void Systemd::ready() { send("READY=1"); }
void Systemd::status(std::string_view text) { send("STATUS=" + printable(text)); }
void Systemd::stopping() { send("STOPPING=1"); }
void Systemd::alive() { send("WATCHDOG=1"); }

void write_termination_message(std::string_view text) {
  const std::string chosen = variable("TRAPLINE_TERMINATION_LOG");
  const std::string path = chosen.empty() ? "/dev/termination-log" : chosen;
  struct stat state {};
  if (chosen.empty() && (::stat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode))) return;
  write_file(path, cut_utf8(text, kMaxMessage), chosen.empty() ? O_TRUNC : O_TRUNC | O_CREAT);
}

void write_error_file(const Finding& root, std::string_view decision) {
  const std::string path = variable("TORCHELASTIC_ERROR_FILE");
  if (path.empty()) return;
  const std::string summary = std::string(info(root.cause).code) + ": " + root.summary;
  // torchrun prints the "callstack" where there is one, and the message else.
  nlohmann::json message = {{"message",
                             {{"message", valid_utf8(summary)},
                              {"extraInfo",
                               {{"py_callstack", valid_utf8(summary + "\n" + std::string(decision))},
                                {"timestamp", std::to_string(std::time(nullptr))}}}}}};
  // torch's own handler in the worker knows more; what it has written stays.
  write_file(path, message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), O_CREAT | O_EXCL);
}

}  // namespace trapline::supervise
