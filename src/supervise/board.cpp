#include "supervise/board.hpp"

#include <chrono>

namespace trapline::supervise {
namespace {

constexpr double kStuck = 10;  // seconds

}  // namespace

std::string_view name_of(State state) {
  switch (state) {
    case State::kStarting:
      return "starting";
    case State::kReady:
      return "ready";
    case State::kUnwell:
      return "unwell";
    case State::kPoisoned:
      return "poisoned";
    case State::kEnding:
      return "ending";
    case State::kWaiting:
      return "waiting";
    case State::kStopped:
      break;
  }
  return "stopped";
}

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Snapshot Board::read() const {
  const std::scoped_lock lock(mutex_);
  Snapshot now = now_;
  const double lasted = steady_seconds() - now.entered;
  if (now.state != State::kReady && now.state != State::kStopped) now.unready_seconds += lasted;
  if (now.state == State::kPoisoned) now.poisoned_seconds += lasted;
  return now;
}

void Board::beat() {
  const std::scoped_lock lock(mutex_);
  beat_ = steady_seconds();
}

bool Board::is_alive() const {
  const std::scoped_lock lock(mutex_);
  return steady_seconds() - beat_ < kStuck;
}

}  // namespace trapline::supervise
