// Passes one stream of the program through, byte for byte, while the log engine reads a copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "core/result.hpp"
#include "log/line.hpp"
#include "supervise/spawn.hpp"

namespace trapline::supervise {

// The bytes go from pipe to pipe inside the kernel where both ends allow it. The program feels what it would
// feel without Trapline: a slow reader slows it down, and when the reader is gone it gets SIGPIPE. Only a
// full disk it does not see: what cannot be written is dropped, once said, and the log engine reads it all
// the same.
class Relay {
 public:
  // `to` stays open as long as this object. `name` is what the lines' source is called.
  static Result<std::unique_ptr<Relay>> open(int to, std::string name, LineSink& sink);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // The end for the program; to be closed here once it was started.
  int write_end() const { return write_end_.get(); }
  void close_write_end() { write_end_.close(); }

  // Nothing comes any more: reads what is there, then ends. With processes left that hold the other end,
  // after at most `seconds`.
  void finish(double seconds);

  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool drops() const { return drops_.load(std::memory_order_relaxed); }

 private:
  Relay(int to, std::string name, LineSink& sink) : to_(to), name_(std::move(name)), sink_(sink) {}

  void pass();
  bool pass_on(std::size_t size);
  std::size_t copy_some(std::size_t size);
  void drop(std::size_t size);
  void scan();

  int to_;
  std::string name_;
  LineSink& sink_;
  Descriptor read_end_, write_end_;    // the program's stream
  Descriptor scan_read_, scan_write_;  // the log engine's copy
  Descriptor stop_;                    // an event: do not wait for more
  bool can_splice_ = true;
  bool is_gone_ = false;  // nobody reads what is passed on
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<bool> drops_{false};
  std::promise<void> passed_;
  std::thread passer_, scanner_;
};

}  // namespace trapline::supervise
