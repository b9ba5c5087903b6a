#include "supervise/relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "log/read/reader.hpp"

namespace trapline::supervise {
namespace {

constexpr int kPipeSize = 1 << 18;  // larger ones leave the cache
constexpr std::size_t kPiece = std::size_t{1} << 20U;
constexpr std::size_t kBlock = std::size_t{64} * 1024;

bool make_pipe(Descriptor& read_end, Descriptor& write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end = Descriptor(ends[0]);
  write_end = Descriptor(ends[1]);
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeSize);  // where the user's limit does not allow it: the usual size
  return true;
}

}  // namespace

Result<std::unique_ptr<Relay>> Relay::open(int to, std::string name, LineSink& sink) {
  std::unique_ptr<Relay> relay(new Relay(to, std::move(name), sink));
  relay->stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!relay->stop_.is_open() || !make_pipe(relay->read_end_, relay->write_end_) ||
      !make_pipe(relay->scan_read_, relay->scan_write_))
    return Error{"cannot pass the program's output through", std::strerror(errno), "close other programs"};
  try {
    relay->passer_ = std::thread([raw = relay.get()] { raw->pass(); });
    relay->scanner_ = std::thread([raw = relay.get()] { raw->scan(); });
  } catch (const std::system_error& error) {
    return Error{"cannot pass the program's output through", error.what(), "end other programs"};
  }
  return relay;
}

Relay::~Relay() { finish(0); }

void Relay::finish(double seconds) {
  write_end_.close();
  if (!passer_.joinable()) return;
  passed_.get_future().wait_for(std::chrono::duration<double>(seconds));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
  passer_.join();
  if (scanner_.joinable()) scanner_.join();
}

void Relay::pass() {
  while (true) {
    std::array<pollfd, 2> wanted{{{read_end_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    if (::poll(wanted.data(), wanted.size(), -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (wanted[0].revents == 0) break;  // there is nothing, and nobody waits for more
    const ssize_t size = ::tee(read_end_.get(), scan_write_.get(), kPiece, 0);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) break;
    bytes_.fetch_add(static_cast<std::uint64_t>(size), std::memory_order_relaxed);
    if (!pass_on(static_cast<std::size_t>(size))) break;
  }
  read_end_.close();
  scan_write_.close();
  passed_.set_value();
}

// False when nobody reads any more.
bool Relay::pass_on(std::size_t size) {
  while (size > 0 && !is_gone_) {
    const ssize_t moved = can_splice_ ? ::splice(read_end_.get(), nullptr, to_, nullptr, size, 0)
                                      : static_cast<ssize_t>(copy_some(size));
    if (moved > 0) {
      size -= static_cast<std::size_t>(moved);
    } else if (moved < 0 && errno == EINVAL) {
      can_splice_ = false;  // a file that is appended to, a terminal
    } else if (moved < 0 && errno == EAGAIN) {
      pollfd room{to_, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (moved < 0 && errno == EPIPE) {
      return false;
    } else if (moved == 0 || errno != EINTR) {
      drop(size);
      return true;
    }
  }
  return !is_gone_;
}

// Through a buffer. What was read and could not be written is dropped. 0: nothing could be read.
std::size_t Relay::copy_some(std::size_t size) {
  std::array<char, kBlock> block;
  ssize_t got = 0;
  do {
    got = ::read(read_end_.get(), block.data(), std::min(size, block.size()));
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return 0;
  std::size_t done = 0;
  while (done < static_cast<std::size_t>(got)) {
    const ssize_t put = ::write(to_, block.data() + done, static_cast<std::size_t>(got) - done);
    if (put > 0) {
      done += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {
      pollfd room{to_, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      is_gone_ = errno == EPIPE;
      drops_.store(true, std::memory_order_relaxed);
      break;
    }
  }
  return static_cast<std::size_t>(got);
}

void Relay::drop(std::size_t size) {
  drops_.store(true, std::memory_order_relaxed);
  std::array<char, kBlock> block;
  while (size > 0) {
    const ssize_t got = ::read(read_end_.get(), block.data(), std::min(size, block.size()));
    if (got > 0) {
      size -= static_cast<std::size_t>(got);
    } else if (got == 0 || errno != EINTR) {
      return;
    }
  }
}

void Relay::scan() {
  LogReader reader(sink_);
  while (true) {
    // A piece that is no text ends the reading, and text may follow.
    reader.read_stream(scan_read_.get(), name_);
    pollfd more{scan_read_.get(), POLLIN, 0};
    while (::poll(&more, 1, -1) < 0 && errno == EINTR) {
    }
    int ready = 0;
    if (::ioctl(scan_read_.get(), FIONREAD, &ready) != 0 || ready == 0) break;
  }
}

}  // namespace trapline::supervise
