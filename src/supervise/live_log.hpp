// The program's output as it comes: what the log engine makes of it, at any moment.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/finding.hpp"
#include "log/line.hpp"
#include "log/reason/reasoner.hpp"

namespace trapline::supervise {

// One for each start of the program; fed by the threads that pass its streams through.
class LiveLog : public LineSink {
 public:
  // `seen` is called, from these threads, when there is something new that the log tells of a fault.
  explicit LiveLog(std::function<void()> seen);
  ~LiveLog() override;

  void line(const Line& line) override;
  void end_of_source(std::string_view source, const SourceEnd& end) override;
  void quiet() override;

  // What was told so far is dealt with.
  void forget();

  // What the lines tell so far.
  Report report();

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  std::function<void()> seen_;
  std::unique_ptr<Reasoner> reasoner_;
  Clock::time_point last_line_;
  bool changed_ = false;
};

}  // namespace trapline::supervise
