#include "report/report_socket.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "report/letters.hpp"

namespace trapline {
namespace {

// An address is "NAME.TOKEN". Every user of the machine can read the name (/proc/net/unix), and connect; so
// what does not begin with the token counts for nothing. A message is "TOKEN TIME NAME\n" and the file's
// text: one packet, so that it comes whole or not at all.
constexpr std::size_t kLetters = 24;
constexpr std::size_t kLongestHeader = 512;
constexpr std::size_t kLongest = 1U << 18U;  // more than a socket's buffer
constexpr int kBacklog = 1024;
constexpr int kMostTaken = 4 * kBacklog;  // whoever sends on and on is not waited for

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
  std::string_view token;  // empty: this is no address
};

Address parsed(std::string_view address) {
  Address out;
  const std::size_t dot = address.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 >= sizeof out.name.sun_path) return out;
  out.name.sun_family = AF_UNIX;
  std::memcpy(out.name.sun_path + 1, address.data(), dot);  // a leading NUL: it is in no folder
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + dot);
  out.token = address.substr(dot + 1);
  return out;
}

const sockaddr* as_sockaddr(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.name);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

int new_socket() { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// Whether others have left no room. A connection is ended at once: it says nothing.
bool is_full(const Address& address) {
  const Descriptor socket(new_socket());
  return socket.number() >= 0 && ::connect(socket.number(), as_sockaddr(address), address.length) != 0 &&
         errno == EAGAIN;
}

}  // namespace

std::optional<HandedFile> read_handed(std::string_view message, std::string_view token) {
  if (token.empty() || !message.starts_with(token)) return std::nullopt;
  message.remove_prefix(token.size());
  const std::size_t end = message.find('\n');
  if (!message.starts_with(' ') || end == std::string_view::npos) return std::nullopt;
  const std::string_view header = message.substr(1, end - 1);
  const std::size_t blank = header.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  HandedFile file;
  const char* const time_end = header.data() + blank;
  const auto [stop, problem] = std::from_chars(header.data(), time_end, file.written);
  if (stop != time_end || problem != std::errc{} || file.written < 0) return std::nullopt;
  file.name = header.substr(blank + 1);
  file.text = message.substr(end + 1);
  // It becomes a file's: no other folder's, and the same to the kernel as to us.
  if (file.name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) return std::nullopt;
  return file;
}

ReportSocket ReportSocket::open() {
  std::array<unsigned char, 2 * kLetters> random{};
  ReportSocket out;
  // What others could guess would be no token.
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return out;
  std::string address = "trapline-";
  for (std::size_t i = 0; i < random.size(); ++i) {
    if (i == kLetters) address += '.';
    address += name_letter(random[i]);
  }
  const Address own = parsed(address);
  out.socket_ = new_socket();
  if (out.socket_ >= 0 && ::bind(out.socket_, as_sockaddr(own), own.length) == 0 &&
      ::listen(out.socket_, kBacklog) == 0)
    out.address_ = std::move(address);
  return out;
}

ReportSocket::~ReportSocket() {
  if (socket_ >= 0) ::close(socket_);
}

ReportSocket::ReportSocket(ReportSocket&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), address_(std::exchange(other.address_, {})) {}

ReportSocket& ReportSocket::operator=(ReportSocket&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(address_, other.address_);
  return *this;
}

Handed ReportSocket::take() const {
  Handed out;
  if (address_.empty()) return out;
  const Address own = parsed(address_);
  out.is_full = is_full(own);
  std::string message(kLongest, '\0');
  for (int taken = 0; taken < kMostTaken; ++taken) {
    const Descriptor sender(::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (sender.number() < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (sender.number() < 0) break;
    const ssize_t size = ::recv(sender.number(), message.data(), message.size(), MSG_DONTWAIT);
    if (size <= 0) continue;
    auto file = read_handed({message.data(), static_cast<std::size_t>(size)}, own.token);
    if (file) out.files.push_back(*std::move(file));
  }
  return out;
}

bool hand_over(std::string_view address, std::string_view name, std::string_view text) noexcept {
  const Address to = parsed(address);
  std::array<char, kLongestHeader> header{};
  constexpr std::size_t kTime = 20;
  if (to.token.empty() || to.token.size() + kTime + name.size() + 3 > header.size()) return false;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  char* end = std::ranges::copy(to.token, header.data()).out;
  *end++ = ' ';
  end = std::to_chars(end, end + kTime, now.tv_sec * 1'000'000'000LL + now.tv_nsec).ptr;
  *end++ = ' ';
  end = std::ranges::copy(name, end).out;
  *end++ = '\n';
  std::array<iovec, 2> parts{iovec{header.data(), static_cast<std::size_t>(end - header.data())},
                             iovec{const_cast<char*>(text.data()), text.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const Descriptor socket(new_socket());
  return socket.number() >= 0 && ::connect(socket.number(), as_sockaddr(to), to.length) == 0 &&
         ::sendmsg(socket.number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

}  // namespace trapline
