#include "supervise/live_log.hpp"

namespace trapline::supervise {
namespace {

// A service logs for months. A fault that it has survived for so long did not end it.
constexpr std::chrono::minutes kForgotten{5};

}  // namespace

LiveLog::LiveLog(std::function<void()> seen)
    : seen_(std::move(seen)), reasoner_(std::make_unique<Reasoner>()) {}

LiveLog::~LiveLog() = default;

void LiveLog::line(const Line& line) {
  const std::scoped_lock lock(mutex_);
  const auto now = Clock::now();
  if (changed_ && now - last_line_ > kForgotten) reasoner_ = std::make_unique<Reasoner>();
  last_line_ = now;
  changed_ = true;
  reasoner_->line(line);
}

void LiveLog::end_of_source(std::string_view source, const SourceEnd& end) {
  const std::scoped_lock lock(mutex_);
  reasoner_->end_of_source(source, end);
}

void LiveLog::quiet() { seen_(); }

void LiveLog::forget() {
  const std::scoped_lock lock(mutex_);
  reasoner_ = std::make_unique<Reasoner>();
  changed_ = false;
}

Report LiveLog::report() {
  const std::scoped_lock lock(mutex_);
  if (!changed_ || Clock::now() - last_line_ > kForgotten) return {};
  return reasoner_->finish(false);  // how the program ended is known: the last line need not tell
}

}  // namespace trapline::supervise
