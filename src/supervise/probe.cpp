#include "supervise/probe.hpp"

#include <chrono>

#include "supervise/http.hpp"

namespace trapline::supervise {
namespace {

constexpr double kOften = 0.05;  // seconds

}  // namespace

Probe::Probe(Url url, double interval, double timeout, std::function<void(bool)> result)
    : url_(std::move(url)), interval_(interval), timeout_(timeout), result_(std::move(result)) {
  thread_ = std::thread([this] { run(); });
}

Probe::~Probe() {
  {
    const std::scoped_lock lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Probe::set(bool on, bool often) {
  {
    const std::scoped_lock lock(mutex_);
    if (on == on_ && often == often_) return;
    on_ = on;
    often_ = often;
  }
  changed_.notify_all();
}

void Probe::run() {
  std::unique_lock lock(mutex_);
  while (!end_) {
    if (!on_) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    const bool is_well = ask();
    lock.lock();
    if (on_ && !end_) {
      lock.unlock();
      result_(is_well);
      lock.lock();
      if (!end_ && on_) changed_.wait_for(lock, std::chrono::duration<double>(often_ ? kOften : interval_));
    }
  }
}

bool Probe::ask() const {
  const int status = get_http(url_, timeout_);
  return status >= 200 && status < 400;
}

}  // namespace trapline::supervise
