// Addresses of --listen and --status, and the listening sockets that outlive the program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "supervise/spawn.hpp"

namespace trapline::supervise {

// "8000", "0.0.0.0:8000", "[::1]:8000", "unix:/run/app.sock". A port alone means loopback.
struct Address {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::string path;  // of a Unix socket; empty: TCP
};

Result<Address> read_address(std::string_view text, std::string_view flag);
std::string to_text(const Address& address);

// Listens, with room for 1024 connections that nobody has accepted yet: they wait while the program is
// replaced.
Result<Descriptor> listen_at(const Address& address);

// "http://127.0.0.1:8000/healthz" in its parts.
struct Url {
  std::string host;
  std::uint16_t port = 80;
  std::string path = "/";
};
Result<Url> read_url(std::string_view text, std::string_view flag);

}  // namespace trapline::supervise
