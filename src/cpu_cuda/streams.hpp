// When the work of an operation is done: at once, as a rule. With TRAPLINE_CPU_LATE it is put on the streams
// of a driver that is made of the CPU (`src/fakecuda`), whose threads come to it later; and while a stream
// captures a graph it is kept for the graph's replays.
#pragma once

#include <c10/core/Stream.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cpu_cuda/device.hpp"

namespace trapline::cpu_cuda {

using Work = std::function<void()>;

// From now on work is late. To be called before the device is used. Throws where `driver` is no such library.
void run_late(const char* driver, std::uint64_t seed);

// Asked in every call: there is late work in this process; and how many streams capture a graph.
inline bool g_late = false;
inline std::atomic<int> g_captures{0};

inline bool is_late() noexcept { return g_late; }
bool captures(c10::StreamId stream) noexcept;
// Whether the calling thread's current stream captures a graph.
inline bool is_capturing() noexcept {
  return g_captures.load(std::memory_order_relaxed) != 0 && captures(current_stream(current_device()));
}
inline bool is_deferred() noexcept { return is_late() || is_capturing(); }

// On the current stream of the current device: for its thread, or for the graph that it captures.
void enqueue(Work work);

// Whether work in a graph keeps its tensors alive, since nobody else keeps the graph's memory.
bool graphs_own_memory() noexcept;

// Until the current stream has done its work; throws what CUDA throws: for a lost context, and while the
// stream captures.
void wait_for_stream();
void wait_for_device();

c10::StreamId new_stream();
void* native_handle(c10::StreamId stream);
bool stream_is_idle(c10::StreamId stream);
void wait_for_stream(c10::StreamId stream);

struct Event;
void record(Event*& event, c10::StreamId stream);
bool has_come(const Event* event);
void wait_for(const Event* event);
void wait_on_stream(const Event* event, c10::StreamId stream);
void destroy(Event* event) noexcept;
double milliseconds_between(const Event* first, const Event* second);

// What a stream was given between begin() and end(), to be done again.
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void begin();  // on the current stream
  void end();
  void replay() const;
  void reset();

 private:
  std::shared_ptr<std::vector<Work>> work_;
  c10::StreamId stream_ = -1;
};

}  // namespace trapline::cpu_cuda
