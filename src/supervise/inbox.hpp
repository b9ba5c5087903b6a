// What other threads have to tell the loop: flags, and a descriptor that wakes it.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "supervise/spawn.hpp"

namespace trapline::supervise {

class Inbox {
 public:
  Inbox() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  int descriptor() const { return wake_.get(); }

  void log_seen() { post(log_); }
  void probed(bool is_well) { post(is_well ? well_ : unwell_); }

  // Each is told once.
  bool take_log_seen() { return log_.exchange(false); }
  bool take_well() { return well_.exchange(false); }
  bool take_unwell() { return unwell_.exchange(false); }
  void clear() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
  }

 private:
  void post(std::atomic<bool>& flag) {
    flag.store(true);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  }

  Descriptor wake_;
  std::atomic<bool> log_{false}, well_{false}, unwell_{false};
};

}  // namespace trapline::supervise
