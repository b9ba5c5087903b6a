#include "queues.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace fakecuda {
namespace {

constexpr int kGlobal = 0;
constexpr int kThreadLocal = 1;
constexpr int kRelaxed = 2;

// Which stream's thread this is; null elsewhere.
thread_local const Stream* own_stream = nullptr;

}  // namespace

void die(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("fake_cuda: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::fflush(stderr);
  std::abort();
}

Stream::Stream(std::uint64_t number) : number_(number) {}

void Stream::enqueue(Operation operation, bool runs_when_lost) {
  {
    const std::lock_guard lock(machine().mutex);
    if (graph != nullptr) {
      graph->operations.push_back(std::move(operation));
      return;
    }
  }
  const std::lock_guard lock(mutex_);
  if (retired_) die("an operation on a stream that was destroyed");
  queue_.push_back({std::move(operation), runs_when_lost});
  changed_.notify_all();
}

void Stream::wait_idle() {
  if (own_stream == this) die("an operation on a stream waits for its own stream");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
}

bool Stream::is_idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !busy_;
}

void Stream::retire() {
  const std::lock_guard lock(mutex_);
  retired_ = true;
  changed_.notify_all();
}

void Stream::run() {
  own_stream = this;
  std::uint64_t seed = machine().seed.load();
  std::minstd_rand random(static_cast<unsigned>(seed * 31 + number_ + 1));
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || retired_; });
      if (queue_.empty()) return;
      item = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
    }
    if (const std::uint64_t now = machine().seed.load(); now != seed) {
      seed = now;
      random.seed(static_cast<unsigned>(seed * 31 + number_ + 1));
    }
    // Mostly at once, sometimes late, seldom very late: so that the host is both ahead and behind.
    const auto draw = random() % 64;
    if (draw == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    } else if (draw < 6) {
      std::this_thread::sleep_for(std::chrono::microseconds(draw * 5));
    } else if (draw < 20) {
      std::this_thread::yield();
    }
    if (item.runs_when_lost || !machine().lost.load()) item.operation();
    item.operation = nullptr;
    {
      const std::lock_guard lock(mutex_);
      busy_ = false;
      changed_.notify_all();
    }
  }
}

void* Machine::add_stream() {
  std::shared_ptr<Stream> stream;
  void* handle = nullptr;
  {
    const std::lock_guard lock(mutex);
    stream = std::make_shared<Stream>(++next_number);
    handle = stream.get();
    streams[handle] = stream;
  }
  std::thread([stream] { stream->run(); }).detach();
  return handle;
}

std::shared_ptr<Stream> Machine::stream(void* handle) {
  {
    const std::lock_guard lock(mutex);
    const auto found = streams.find(handle);
    if (found != streams.end()) return found->second;
    if (handle != nullptr) die("stream %p does not exist", handle);
  }
  auto made = std::make_shared<Stream>(0);
  const std::lock_guard lock(mutex);
  const auto [at, added] = streams.emplace(nullptr, made);
  if (added) std::thread([made] { made->run(); }).detach();
  return at->second;
}

std::shared_ptr<Event> Machine::event(void* handle) {
  const std::lock_guard lock(mutex);
  const auto found = events.find(handle);
  if (found == events.end()) die("event %p does not exist", handle);
  return found->second;
}

std::vector<std::shared_ptr<Stream>> Machine::all_streams() {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<Stream>> all;
  for (const auto& entry : streams) all.push_back(entry.second);
  return all;
}

void Machine::wait_idle() {
  // An operation may wait for another stream's, so one round is not enough to be sure.
  for (bool idle = false; !idle;) {
    const auto all = all_streams();
    for (const auto& stream : all) stream->wait_idle();
    idle = true;
    for (const auto& stream : all) idle = idle && stream->is_idle();
  }
}

// No getpid() at every call: a driver makes no system call for a launch, and what the guard costs is measured
// here.
Machine& machine() {
  static std::atomic<bool> forked{false};
  static auto* const kMachine = [] {
    pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
    return new Machine;
  }();
  if (forked.load(std::memory_order_relaxed)) die("a call in a forked child");
  return *kMachine;
}

void must_live(const void* address, std::size_t bytes, const char* what) {
  if (address == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  auto after = all.freed.lower_bound(begin + bytes);
  if (after == all.freed.begin()) return;
  --after;
  if (after->first + after->second > begin) die("%s at %p was freed", what, address);
}

void must_be_mapped(const void* address, std::size_t bytes, const char* what) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  auto after = all.memory.upper_bound(begin);
  if (after == all.memory.begin()) die("%s at %p is not mapped", what, address);
  --after;
  if (!after->second.mapped || after->first + after->second.bytes < begin + bytes) {
    die("%s at %p is not mapped", what, address);
  }
}

int& capture_mode() {
  thread_local int mode = kGlobal;
  return mode;
}

bool may_call_unsafe() {
  if (capture_mode() == kRelaxed) return true;
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  for (const auto& entry : all.streams) {
    const Graph* graph = entry.second->graph.get();
    if (graph == nullptr || graph->mode == kRelaxed) continue;
    const bool of_others = graph->mode == kThreadLocal || capture_mode() == kThreadLocal;
    if (of_others && graph->owner != std::this_thread::get_id()) continue;
    all.spoiled = true;
    return false;
  }
  return true;
}

}  // namespace fakecuda
