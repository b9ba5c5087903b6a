#include "cuda/streams.hpp"

#include <map>
#include <utility>

#include "cuda/slots.hpp"

namespace trapline::cuda {
namespace {

constexpr std::size_t kMarkEvery = 64;

struct Streams {
  std::mutex mutex;
  std::map<std::pair<int, Handle>, Stream*> by_handle;
  std::vector<Stream*> all;
};

Streams& streams() {
  static auto* const kStreams = new Streams;  // leaked, as the devices
  return *kStreams;
}

Stream& add(Streams& known, Device& device, Handle handle) {
  return *known.all.emplace_back(new Stream(device, handle));
}

}  // namespace

bool Stream::has_run(Handle event) {
  const InContext in_context(device_);
  const Result result = device_.driver->event_query(event);
  return result == kSuccess || (result != kNotReady && device_.succeeded(result));
}

void Stream::free_marks() {
  while (!marks_.empty() && has_run(marks_.front().event)) {
    complete(marks_.front().slots);
    device_.give_event(marks_.front().event);
    marks_.pop_front();
  }
}

void Stream::count_launch(std::int64_t slot) {
  if (event_ == nullptr) event_ = device_.take_event();
  // Without an event the slot is never freed, and what was launched is still reported.
  if (event_ == nullptr || !device_.succeeded(device_.driver->event_record(event_, handle_))) return;
  since_.push_back(slot);
  if (since_.size() < kMarkEvery) return;
  marks_.push_back({event_, std::move(since_)});
  event_ = nullptr;
  since_ = {};
  since_.reserve(kMarkEvery);
  free_marks();
}

void Stream::recycle() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || device_.lost.load(std::memory_order_relaxed)) return;
  free_marks();
  if (since_.empty() || !marks_.empty() || !has_run(event_)) return;
  complete(since_);
  since_.clear();
}

bool Stream::wait() {
  if (device_.lost.load(std::memory_order_relaxed)) return false;
  Handle event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!since_.empty()) {
      event = event_;
    } else if (!marks_.empty()) {
      event = marks_.back().event;
    }
  }
  if (event == nullptr) return true;
  // If another thread frees the event meanwhile, the launches have run, and it stands for something later.
  const InContext in_context(device_);
  return device_.succeeded(device_.driver->event_synchronize(event));
}

Stream& stream_of(Device& device, Handle handle) {
  if (handle == kPerThreadStream) {
    thread_local std::map<int, Stream*> own;
    Stream*& stream = own[device.index];
    if (stream == nullptr) {
      const std::lock_guard lock(streams().mutex);
      stream = &add(streams(), device, handle);
    }
    return *stream;
  }
  Streams& known = streams();
  const std::lock_guard lock(known.mutex);
  Stream*& stream = known.by_handle[{device.index, handle}];
  if (stream == nullptr) stream = &add(known, device, handle);
  return *stream;
}

Stream* find_stream(const Device& device, Handle handle) {
  Streams& known = streams();
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_handle.find({device.index, handle});
  return found == known.by_handle.end() ? nullptr : found->second;
}

std::vector<Stream*> all_streams() {
  const std::lock_guard lock(streams().mutex);
  return streams().all;
}

}  // namespace trapline::cuda
