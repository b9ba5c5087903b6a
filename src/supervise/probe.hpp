// --probe URL: asks the program over HTTP whether it is well, on a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "supervise/sockets.hpp"

namespace trapline::supervise {

// Often while the program is not ready, so that readiness is known at once; every `interval` seconds after
// that.
class Probe {
 public:
  // `result` is called on the probe's thread after each question.
  Probe(Url url, double interval, double timeout, std::function<void(bool is_well)> result);
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // While on, it asks; `often`: without waiting for the interval.
  void set(bool on, bool often);

 private:
  void run();
  bool ask() const;

  Url url_;
  double interval_, timeout_;
  std::function<void(bool)> result_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool on_ = false, often_ = true, end_ = false;
  std::thread thread_;
};

}  // namespace trapline::supervise
