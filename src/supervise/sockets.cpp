#include "supervise/sockets.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace trapline::supervise {
namespace {

constexpr int kBacklog = 1024;

bool read_port(std::string_view text, std::uint16_t& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0;
}

// "HOST:PORT", "[::1]:PORT" or "PORT".
bool read_host_and_port(std::string_view text, std::string& host, std::uint16_t& port) {
  if (text.starts_with("[")) {
    const auto end = text.find("]:");
    if (end == std::string_view::npos) return false;
    host = text.substr(1, end - 1);
    return !host.empty() && read_port(text.substr(end + 2), port);
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return read_port(text, port);
  if (colon == 0 || text.find(':') != colon) return false;
  host = text.substr(0, colon);
  return read_port(text.substr(colon + 1), port);
}

Error cannot_listen(const Address& address, const std::string& why) {
  return {fmt::format("cannot listen at {}", to_text(address)), why,
          why == std::strerror(EADDRINUSE) ? "choose another port, or end the program that has it"
                                           : "choose another address"};
}

Result<Descriptor> listen_at_path(const Address& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof name.sun_path) return cannot_listen(address, "the path is too long");
  std::memcpy(name.sun_path, address.path.c_str(), address.path.size() + 1);
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return cannot_listen(address, std::strerror(errno));
  const auto* where = reinterpret_cast<const sockaddr*>(&name);
  // What nobody listens at any more was left by a process that was killed.
  if (::connect(socket.get(), where, sizeof name) == 0)
    return cannot_listen(address, std::strerror(EADDRINUSE));
  if (errno == ECONNREFUSED) ::unlink(address.path.c_str());
  socket = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || ::bind(socket.get(), where, sizeof name) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return cannot_listen(address, std::strerror(errno));
  return socket;
}

}  // namespace

Result<Address> read_address(std::string_view text, std::string_view flag) {
  Address address;
  if (text.starts_with("unix:")) {
    address.path = text.substr(5);
    if (!address.path.empty()) return address;
  } else if (read_host_and_port(text, address.host, address.port)) {
    return address;
  }
  return Error{fmt::format("{} must be a port, HOST:PORT or unix:PATH, not '{}'", flag, text), "",
               fmt::format("e.g. {} 127.0.0.1:8000", flag)};
}

std::string to_text(const Address& address) {
  if (!address.path.empty()) return "unix:" + address.path;
  return address.host.find(':') == std::string::npos ? fmt::format("{}:{}", address.host, address.port)
                                                     : fmt::format("[{}]:{}", address.host, address.port);
}

Result<Descriptor> listen_at(const Address& address) {
  if (!address.path.empty()) return listen_at_path(address);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &found); error != 0)
    return cannot_listen(address, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    const int yes = 1;
    if (socket.is_open() && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        ::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0)
      return socket;
    error = errno;
  }
  return cannot_listen(address, std::strerror(error));
}

Result<Url> read_url(std::string_view text, std::string_view flag) {
  const Error wrong{fmt::format("{} must be a URL that begins with http://, not '{}'", flag, text), "",
                    fmt::format("e.g. {} http://127.0.0.1:8000/healthz", flag)};
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) return wrong;
  text.remove_prefix(kScheme.size());
  Url url;
  const auto slash = text.find('/');
  const std::string_view where = text.substr(0, slash);
  if (slash != std::string_view::npos) url.path = text.substr(slash);
  const bool has_port = where.rfind(':') != std::string_view::npos && !where.ends_with("]");
  if (where.empty() || url.path.find_first_of(" \r\n") != std::string::npos) return wrong;
  if (!has_port) {
    url.host = where;
    return url;
  }
  if (!read_host_and_port(where, url.host, url.port) || url.host.empty()) return wrong;
  return url;
}

}  // namespace trapline::supervise
