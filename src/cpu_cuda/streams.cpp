#include "cpu_cuda/streams.hpp"

#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "cpu_cuda/context.hpp"
#include "cpu_cuda/device.hpp"

namespace trapline::cpu_cuda {
namespace {

using c10::StreamId;
using Clock = std::chrono::steady_clock;

constexpr int kNotReady = 600;
constexpr int kAssert = 710;
constexpr int kCaptureUnsupported = 900;

#define TRAPLINE_DRIVER_CALLS(X)                                           \
  X(stream_create, "cuStreamCreate", int, (void**, unsigned))              \
  X(stream_synchronize, "cuStreamSynchronize", int, (void*))               \
  X(stream_query, "cuStreamQuery", int, (void*))                           \
  X(stream_wait_event, "cuStreamWaitEvent", int, (void*, void*, unsigned)) \
  X(context_synchronize, "cuCtxSynchronize", int, ())                      \
  X(event_create, "cuEventCreate", int, (void**, unsigned))                \
  X(event_record, "cuEventRecord", int, (void*, void*))                    \
  X(event_query, "cuEventQuery", int, (void*))                             \
  X(event_synchronize, "cuEventSynchronize", int, (void*))                 \
  X(event_destroy, "cuEventDestroy_v2", int, (void*))                      \
  X(seed, "fake_cuda_seed", void, (std::uint64_t))                         \
  X(enqueue, "fake_cuda_enqueue", void, (void*, void (*)(void*), void*))   \
  X(poison, "fake_cuda_poison", void, ())                                  \
  X(reset, "fake_cuda_reset", void, ())                                    \
  X(capture_begin, "fake_cuda_capture_begin", void, (void*))               \
  X(capture_end, "fake_cuda_capture_end", void*, (void*))                  \
  X(replay, "fake_cuda_replay", void, (void*, void*))

struct Driver {
#define TRAPLINE_DRIVER_MEMBER(member, name, result, parameters) result(*member) parameters = nullptr;
  TRAPLINE_DRIVER_CALLS(TRAPLINE_DRIVER_MEMBER)
#undef TRAPLINE_DRIVER_MEMBER
};

const Driver* g_driver = nullptr;  // null: work is done at once
pid_t g_owner = 0;                 // its threads are not those of a child

struct Streams {
  std::mutex mutex;
  std::deque<void*> handles{nullptr};  // by StreamId; 0 is the default stream of every device
  std::map<StreamId, std::vector<Work>*> captures;
};

Streams& streams() {
  static auto* all = new Streams;  // threads may outlive static objects
  return *all;
}

StreamId current() { return current_stream(current_device()); }

std::vector<Work>* capture_of(StreamId stream) {
  if (g_captures.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard<std::mutex> lock(streams().mutex);
  const auto found = streams().captures.find(stream);
  return found == streams().captures.end() ? nullptr : found->second;
}

[[noreturn]] void throw_capturing() {
  throw_cuda_error(kCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
                   "operation not permitted when stream is capturing");
}

void check(int result) {
  check_context();
  if (result == kCaptureUnsupported) throw_capturing();
  TORCH_CHECK(result == 0 || result == kNotReady || result == kAssert,
              "trapline: --cpu: the driver of late work answers ", result);
}

// On a stream's thread, which nothing may leave by an exception.
void run(const Work& work) noexcept {
  try {
    work();
  } catch (const c10::Error& error) {
    lose_context(std::string("trapline: --cpu: late work failed: ") + error.what_without_backtrace());
  } catch (const std::exception& error) {
    lose_context(std::string("trapline: --cpu: late work failed: ") + error.what());
  }
}

}  // namespace

void run_late(const char* driver, std::uint64_t seed) {
  void* library = dlopen(driver, RTLD_NOW | RTLD_GLOBAL);
  TORCH_CHECK(library != nullptr, "trapline: --cpu: ", driver, " cannot be loaded: install Trapline again");
  auto* loaded = new Driver;
#define TRAPLINE_DRIVER_LOAD(member, name, result, parameters)                          \
  loaded->member = reinterpret_cast<result(*) parameters>(dlsym(library, name));        \
  TORCH_CHECK(loaded->member != nullptr, "trapline: --cpu: ", driver, " has no ", name, \
              ": install Trapline again");
  TRAPLINE_DRIVER_CALLS(TRAPLINE_DRIVER_LOAD)
#undef TRAPLINE_DRIVER_LOAD
  loaded->seed(seed);
  g_owner = getpid();
  follow_context(loaded->poison, loaded->reset);
  g_driver = loaded;
  g_late = true;
}

bool captures(StreamId stream) noexcept { return capture_of(stream) != nullptr; }

void enqueue(Work work) {
  std::vector<Work>* capture = capture_of(current());
  if (g_driver == nullptr) {
    if (capture == nullptr) return work();
    const std::lock_guard<std::mutex> lock(streams().mutex);
    capture->push_back(std::move(work));
    return;
  }
  // What a graph runs again, or a lost context leaves undone, is never freed.
  auto* item = new Work(std::move(work));
  const auto once = [](void* data) {
    const std::unique_ptr<Work> own(static_cast<Work*>(data));
    run(*own);
  };
  const auto again = [](void* data) { run(*static_cast<Work*>(data)); };
  void* handle = native_handle(current());
  if (capture != nullptr) return g_driver->enqueue(handle, again, item);
  g_driver->enqueue(handle, once, item);
  if (launches_block()) wait_for_stream();
}

bool graphs_own_memory() noexcept { return true; }

void wait_for_stream() { wait_for_stream(current()); }

void wait_for_stream(StreamId stream) {
  check_context();
  if (capture_of(stream) != nullptr) throw_capturing();
  if (g_driver != nullptr) check(g_driver->stream_synchronize(native_handle(stream)));
}

void wait_for_device() {
  check_context();
  if (g_captures.load(std::memory_order_relaxed) != 0) throw_capturing();
  if (g_driver != nullptr) check(g_driver->context_synchronize());
}

StreamId new_stream() {
  void* handle = nullptr;
  if (g_driver != nullptr) check(g_driver->stream_create(&handle, 0));
  const std::lock_guard<std::mutex> lock(streams().mutex);
  streams().handles.push_back(handle);
  return static_cast<StreamId>(streams().handles.size()) - 1;
}

void* native_handle(StreamId stream) {
  if (g_driver == nullptr) return reinterpret_cast<void*>(static_cast<std::intptr_t>(stream));
  const std::lock_guard<std::mutex> lock(streams().mutex);
  return streams().handles.at(static_cast<std::size_t>(stream));
}

bool stream_is_idle(StreamId stream) {
  check_context();
  return g_driver == nullptr || g_driver->stream_query(native_handle(stream)) == 0;
}

struct Event {
  void* handle = nullptr;
  std::shared_ptr<Clock::time_point> when = std::make_shared<Clock::time_point>();
};

void record(Event*& event, StreamId stream) {
  check_context();
  if (event == nullptr) {
    event = new Event;
    if (g_driver != nullptr) check(g_driver->event_create(&event->handle, 0));
  }
  if (g_driver == nullptr) {
    *event->when = Clock::now();
    return;
  }
  void* handle = native_handle(stream);
  if (capture_of(stream) == nullptr) {
    auto* when = new std::shared_ptr<Clock::time_point>(event->when);
    const auto note = [](void* data) {
      const std::unique_ptr<std::shared_ptr<Clock::time_point>> own(
          static_cast<std::shared_ptr<Clock::time_point>*>(data));
      **own = Clock::now();
    };
    g_driver->enqueue(handle, note, when);
  }
  check(g_driver->event_record(event->handle, handle));
}

bool has_come(const Event* event) {
  return event == nullptr || event->handle == nullptr || g_driver->event_query(event->handle) == 0;
}

void wait_for(const Event* event) {
  check_context();
  if (event != nullptr && event->handle != nullptr) check(g_driver->event_synchronize(event->handle));
}

void wait_on_stream(const Event* event, StreamId stream) {
  check_context();
  if (event != nullptr && event->handle != nullptr)
    check(g_driver->stream_wait_event(native_handle(stream), event->handle, 0));
}

void destroy(Event* event) noexcept {
  if (event != nullptr && event->handle != nullptr && getpid() == g_owner)
    g_driver->event_destroy(event->handle);
  delete event;
}

double milliseconds_between(const Event* first, const Event* second) {
  TORCH_CHECK(first != nullptr && second != nullptr,
              "Both events must be recorded before calculating elapsed time.");
  return std::chrono::duration<double, std::milli>(*second->when - *first->when).count();
}

void Graph::begin() {
  check_context();
  TORCH_CHECK(work_ == nullptr,
              "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new "
              "instance.");
  stream_ = current();
  TORCH_CHECK(stream_ != 0,
              "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to "
              "replay them on the default stream.)");
  auto work = std::make_shared<std::vector<Work>>();
  if (g_driver != nullptr) g_driver->capture_begin(native_handle(stream_));
  const std::lock_guard<std::mutex> lock(streams().mutex);
  streams().captures[stream_] = work.get();
  g_captures.fetch_add(1);
  work_ = std::move(work);
}

Graph::~Graph() { reset(); }

void Graph::end() {
  {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    TORCH_CHECK(work_ != nullptr && streams().captures.erase(stream_) == 1,
                "capture_end() without capture_begin()");
    g_captures.fetch_sub(1);
  }
  TORCH_CHECK(current() == stream_, "Capture must end on the same stream it began on.");
  if (g_driver == nullptr) return;
  void* captured = g_driver->capture_end(native_handle(stream_));
  if (captured == nullptr) {
    work_ = nullptr;
    throw_cuda_error(901, "cudaErrorStreamCaptureInvalidated",
                     "operation failed due to a previous error during capture");
  }
  work_->push_back([captured] { g_driver->replay(captured, native_handle(current())); });
}

void Graph::replay() const {
  check_context();
  TORCH_CHECK(work_ != nullptr, "Called CUDAGraph::replay without a preceding successful capture.");
  for (const Work& work : *work_) work();
}

void Graph::reset() {
  {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    const auto found = streams().captures.find(stream_);
    if (work_ != nullptr && found != streams().captures.end() && found->second == work_.get()) {
      streams().captures.erase(found);
      g_captures.fetch_sub(1);
    }
  }
  work_ = nullptr;
}

}  // namespace trapline::cpu_cuda
