// Streams and events. Handles are the driver's.
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

#include "runtime.hpp"

using namespace fakecuda;
using namespace fakecuda::runtime;

extern "C" {
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamDestroy_v2(void* stream);
int cuStreamQuery(void* stream);
int cuStreamSynchronize(void* stream);
int cuStreamWaitEvent(void* stream, void* event, unsigned flags);
int cuEventCreate(void** event, unsigned flags);
int cuEventDestroy_v2(void* event);
int cuEventQuery(void* event);
int cuEventRecord(void* event, void* stream);
int cuEventSynchronize(void* event);
}

namespace {

// What the driver's event lacks.
struct More {
  std::atomic<std::int64_t> when{0};  // nanoseconds, when it came
  std::weak_ptr<Graph> graph;         // that it was last recorded in
  bool in_graph = false;
  bool recorded = false;
};

struct Side {
  std::mutex mutex;
  std::map<void*, std::shared_ptr<More>> events;
  std::map<void*, int> priorities;
};

Side& side() {
  static auto* const kSide = new Side;
  return *kSide;
}

std::shared_ptr<More> more_of(cudaEvent_t event) {
  const std::lock_guard lock(side().mutex);
  const auto found = side().events.find(event);
  return found == side().events.end() ? nullptr : found->second;
}

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool is_captured_by(const std::shared_ptr<Graph>& graph) {
  const std::lock_guard lock(machine().mutex);
  for (const auto& entry : machine().streams) {
    if (entry.second->graph == graph) return true;
  }
  return false;
}

cudaError_t spoil(cudaError_t error) {
  const std::lock_guard lock(machine().mutex);
  machine().spoiled = true;
  return note(error);
}

}  // namespace

// The legacy stream is no other than the default one here, nor is that of a thread.
std::shared_ptr<Stream> runtime::stream_of(cudaStream_t stream) {
  const bool is_default = stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  return machine().stream(is_default ? nullptr : stream);
}

std::shared_ptr<Graph> runtime::capture_of(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(machine().mutex);
  return stream->graph;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  FAKE_RT_ALIVE();
  load_kernels();
  make_active(current_device());
  const int result = cuStreamCreate(reinterpret_cast<void**>(stream), flags);
  const std::lock_guard lock(side().mutex);
  side().priorities[*stream] = priority;
  return note(result);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return note(cuStreamDestroy_v2(stream)); }

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  const std::lock_guard lock(side().mutex);
  *priority = side().priorities[stream];
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  FAKE_RT_ALIVE();
  const auto stream = stream_of(handle);
  if (capture_of(stream) != nullptr) return spoil(cudaErrorStreamCaptureUnsupported);
  return note(cuStreamQuery(handle));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  FAKE_RT_ALIVE();
  return note(cuStreamSynchronize(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  FAKE_RT_ALIVE();
  const auto more = more_of(event);
  if (more == nullptr) return note(cudaErrorInvalidResourceHandle);
  if (!more->recorded) return cudaSuccess;
  const auto stream = stream_of(handle);
  const auto mine = capture_of(stream);
  if (!more->in_graph) {
    if (mine != nullptr) return spoil(cudaErrorStreamCaptureIsolation);
    return note(cuStreamWaitEvent(handle, event, 0));
  }
  const auto graph = more->graph.lock();
  if (graph == nullptr || !is_captured_by(graph)) return note(cudaErrorCapturedEvent);
  if (mine == graph) return cudaSuccess;  // its operations are in one order
  if (mine != nullptr) return spoil(cudaErrorStreamCaptureIsolation);
  const std::lock_guard lock(machine().mutex);
  stream->graph = graph;  // a stream that waits for a captured one is captured with it
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void* data, unsigned) {
  FAKE_RT_ALIVE();
  stream_of(stream)->enqueue(
      [=] { call(stream, machine().lost.load() ? cudaErrorAssert : cudaSuccess, data); }, true);
  return cudaSuccess;
}

// For the kernels of PyTorch's operations: `run(data)` on the stream, as often as a graph is replayed;
// `drop(data)` when it cannot come again.
extern "C" __attribute__((visibility("default"))) void fake_cuda_enqueue_owned(cudaStream_t stream,
                                                                               void (*run)(void*), void* data,
                                                                               void (*drop)(void*)) {
  const std::shared_ptr<void> owned(data, drop);
  stream_of(stream)->enqueue([=] { run(owned.get()); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* data) {
  FAKE_RT_ALIVE();
  stream_of(stream)->enqueue([=] { call(data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  FAKE_RT_ALIVE();
  const int result = cuEventCreate(reinterpret_cast<void**>(event), flags);
  const std::lock_guard lock(side().mutex);
  side().events[*event] = std::make_shared<More>();
  return note(result);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  {
    const std::lock_guard lock(side().mutex);
    side().events.erase(event);
  }
  return note(cuEventDestroy_v2(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  FAKE_RT_ALIVE();
  const auto more = more_of(event);
  if (more == nullptr) return note(cudaErrorInvalidResourceHandle);
  const auto stream = stream_of(handle);
  const auto graph = capture_of(stream);
  more->graph = graph;
  more->in_graph = graph != nullptr;
  more->recorded = true;
  if (graph == nullptr) stream->enqueue([more] { more->when.store(now()); }, true);
  return note(cuEventRecord(event, handle));
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return note(cuEventQuery(event)); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return note(cuEventSynchronize(event)); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  FAKE_RT_ALIVE();
  const auto from = more_of(first), to = more_of(second);
  if (from == nullptr || to == nullptr || !from->recorded || !to->recorded) {
    return note(cudaErrorInvalidResourceHandle);
  }
  if (cuEventQuery(first) == kNotReady || cuEventQuery(second) == kNotReady) return note(cudaErrorNotReady);
  *milliseconds = static_cast<float>(to->when.load() - from->when.load()) / 1e6F;
  return cudaSuccess;
}
