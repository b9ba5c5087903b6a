#include "supervise/contexts.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace trapline::supervise {
namespace {

constexpr std::size_t kMaxPeers = 512;
constexpr std::string_view kQuestion = "context?";

}  // namespace

Result<Contexts> Contexts::open(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket.string();
  const Error failed{"processes cannot be asked for their CUDA contexts", "",
                     "choose a shorter folder with --report"};
  if (path.size() >= sizeof address.sun_path) return Error{failed.what, "the path is too long", failed.fix};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Descriptor listening(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::unlink(path.c_str());
  if (!listening.is_open() ||
      ::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening.get(), 64) != 0)
    return Error{failed.what, std::strerror(errno), failed.fix};
  return Contexts(std::move(listening));
}

std::vector<int> Contexts::descriptors() const {
  std::vector<int> out{listening_.get()};
  for (const auto& [pid, peer] : peers_) out.push_back(peer.socket.get());
  return out;
}

void Contexts::serve() {
  while (true) {
    Descriptor socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) break;
    ucred who{};
    socklen_t size = sizeof who;
    // The kernel says who it is; what they say of themselves does not count.
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || peers_.size() >= kMaxPeers)
      continue;
    peers_.insert_or_assign(who.pid, Peer{std::move(socket)});
  }
  for (auto peer = peers_.begin(); peer != peers_.end();)
    peer = read_from(peer->second) ? std::next(peer) : peers_.erase(peer);
}

// False when the process has gone.
bool Contexts::read_from(Peer& peer) {
  std::array<char, 1024> block;
  while (true) {
    const ssize_t got = ::recv(peer.socket.get(), block.data(), block.size(), 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    const std::string_view word(block.data(), static_cast<std::size_t>(got));
    if (peer.answer != ContextAnswer::kWaiting) continue;
    if (word.starts_with("dead")) {
      peer.answer = ContextAnswer::kDead;
    } else if (word == "alive") {
      peer.answer = ContextAnswer::kAlive;
    } else if (word == "none") {
      peer.answer = ContextAnswer::kNone;
    }
  }
}

std::size_t Contexts::ask(const std::vector<pid_t>& pids) {
  std::size_t asked = 0;
  for (auto& [pid, peer] : peers_) {
    peer.answer = ContextAnswer::kNotAsked;
    if (std::ranges::find(pids, pid) == pids.end()) continue;
    if (::send(peer.socket.get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) < 0) continue;
    peer.answer = ContextAnswer::kWaiting;
    ++asked;
  }
  return asked;
}

std::vector<pid_t> Contexts::dead() const {
  std::vector<pid_t> out;
  for (const auto& [pid, peer] : peers_) {
    if (peer.answer == ContextAnswer::kDead) out.push_back(pid);
  }
  return out;
}

ContextAnswer Contexts::answer() const {
  ContextAnswer out = ContextAnswer::kNotAsked;
  for (const auto& [pid, peer] : peers_) {
    if (peer.answer == ContextAnswer::kDead) return ContextAnswer::kDead;
    if (peer.answer == ContextAnswer::kWaiting || out == ContextAnswer::kWaiting)
      out = ContextAnswer::kWaiting;
    else
      out = std::max(out, peer.answer);
  }
  return out;
}

}  // namespace trapline::supervise
