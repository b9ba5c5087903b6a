// The entry points: names and behaviour of the real driver API. Handles are addresses.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fake_cuda.h"
#include "kernels.hpp"
#include "queues.hpp"

using namespace fakecuda;
using trapline::cuda::CheckArgs;

namespace {

constexpr int kDevices = 2;
char contexts[kDevices];  // only their addresses matter

void*& current_context() {
  thread_local void* context = &contexts[0];
  return context;
}

// The prologue of every call: nothing works once the context is lost.
#define FAKE_CUDA_ALIVE() \
  if (machine().lost.load()) return kAssert

void* memory_at(unsigned long long address) {
  return std::bit_cast<void*>(static_cast<std::uintptr_t>(address));
}

void check_arguments(const CheckArgs& args, unsigned blocks) {
  if (args.numel <= 0 || args.dim < 0 || args.dim > trapline::cuda::kMaxDims) {
    die("launch: numel %lld and dim %d cannot be", static_cast<long long>(args.numel), args.dim);
  }
  must_be_mapped(args.slot, sizeof(*args.slot), "launch: slot");
  must_be_mapped(args.alarm, sizeof(*args.alarm), "launch: alarm");
  if (blocks > 1 && args.scratch == nullptr) die("launch: %u blocks without scratch", blocks);
}

std::size_t bytes_of(const CheckArgs& args) {
  constexpr std::size_t kBytes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kBytes[args.dtype];
}

void run_kernel(HostKernel kernel, const CheckArgs& args, unsigned blocks, std::uint64_t seed) {
  must_live(args.data, bytes_of(args), "launch: data");
  must_live(args.healed, bytes_of(args) * static_cast<std::size_t>(args.numel), "launch: healed");
  must_live(args.lengths, 8 * static_cast<std::size_t>(args.lengths_count), "launch: lengths");
  must_live(args.scratch, sizeof(*args.scratch), "launch: scratch");
  must_live(args.slot, sizeof(*args.slot), "launch: slot");
  if (blocks > 1 && args.scratch->done != 0) die("launch: scratch is not zeroed");
  std::minstd_rand order(static_cast<unsigned>(seed + 1));
  kernel(args, blocks, order);
  ++machine().launches;
}

int allocate(void** pointer, std::size_t bytes, bool mapped) {
  if (!may_call_unsafe()) return kCaptureUnsupported;
  if (bytes == 0) return kInvalidValue;
  const std::size_t rounded = (bytes + 511) / 512 * 512;
  *pointer = std::aligned_alloc(512, rounded);
  if (*pointer == nullptr) return 2;  // OUT_OF_MEMORY
  std::memset(*pointer, 0xCD, rounded);
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  all.memory[reinterpret_cast<std::uintptr_t>(*pointer)] = {bytes, mapped};
  return kOk;
}

// The memory itself is kept, so that a late access is noticed and does no harm.
int release(std::uintptr_t address, bool mapped) {
  if (!may_call_unsafe()) return kCaptureUnsupported;
  if (address == 0) return kOk;
  machine().wait_idle();
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.memory.find(address);
  if (found == all.memory.end() || found->second.mapped != mapped) {
    die("free: %p was not allocated", memory_at(address));
  }
  all.freed[address] = found->second.bytes;
  std::memset(memory_at(address), 0xDD, found->second.bytes);
  all.memory.erase(found);
  return kOk;
}

int copy(void* to, const void* from, std::size_t bytes, void* stream) {
  FAKE_CUDA_ALIVE();
  machine().stream(stream)->enqueue([=] {
    must_live(to, bytes, "copy: target");
    must_live(from, bytes, "copy: source");
    std::memcpy(to, from, bytes);
  });
  return kOk;
}

int unless_lost(int result) { return machine().lost.load() ? kAssert : result; }

}  // namespace

#define FAKE extern "C" FAKE_CUDA_API int

FAKE cuInit(unsigned) { return unless_lost(kOk); }
FAKE cuDriverGetVersion(int* version) {
  *version = 12000;
  return kOk;
}
FAKE cuDeviceGetCount(int* count) {
  *count = kDevices;
  return unless_lost(kOk);
}
FAKE cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDevices) return 101;  // INVALID_DEVICE
  *device = ordinal;
  return unless_lost(kOk);
}
FAKE cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "fake %d", device);
  return kOk;
}
FAKE cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device < 0 || device >= kDevices) return 101;
  *context = &contexts[device];
  return unless_lost(kOk);
}
FAKE cuCtxGetCurrent(void** context) {
  *context = current_context();
  return unless_lost(kOk);
}
FAKE cuCtxSetCurrent(void* context) {
  if (context != nullptr && (context < contexts || context >= contexts + kDevices)) return kInvalidContext;
  current_context() = context;
  return unless_lost(kOk);
}
FAKE cuCtxSynchronize() {
  FAKE_CUDA_ALIVE();
  if (!may_call_unsafe()) return kCaptureUnsupported;
  machine().wait_idle();
  return unless_lost(kOk);
}

FAKE cuModuleLoadData(void** module, const void* image) {
  FAKE_CUDA_ALIVE();
  if (!may_call_unsafe()) return kCaptureUnsupported;
  const std::string text = static_cast<const char*>(image);
  if (text.find(".version ") == std::string::npos || text.find(".target ") == std::string::npos) return 218;
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  *module =
      const_cast<std::string*>(all.modules.emplace_back(std::make_unique<const std::string>(text)).get());
  return kOk;
}
FAKE cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return cuModuleLoadData(module, image);
}
FAKE cuModuleGetFunction(void** function, void* module, const char* name) {
  FAKE_CUDA_ALIVE();
  const auto& text = *static_cast<const std::string*>(module);
  const std::string parameter = std::string(name) + "_param_0[" + std::to_string(sizeof(CheckArgs)) + "]";
  const bool there = text.find(".entry " + std::string(name) + "(") != std::string::npos;
  if (!there || find_kernel(name) == nullptr) return kNotFound;
  if (text.find(parameter) == std::string::npos) die("%s takes another parameter than this build's", name);
  *function = reinterpret_cast<void*>(find_kernel(name));
  return kOk;
}
FAKE cuLaunchKernel(void* function, unsigned blocks, unsigned grid_y, unsigned grid_z, unsigned threads,
                    unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** parameters,
                    void** extra) {
  FAKE_CUDA_ALIVE();
  if (function == nullptr || blocks == 0 || blocks > trapline::cuda::kMaxBlocks || grid_y != 1 ||
      grid_z != 1 || threads != trapline::cuda::kThreads || block_y != 1 || block_z != 1 || shared != 0 ||
      parameters == nullptr || parameters[0] == nullptr || extra != nullptr) {
    die("launch: %u x %u x %u blocks of %u x %u x %u threads is not a launch of a check kernel", blocks,
        grid_y, grid_z, threads, block_y, block_z);
  }
  CheckArgs args;
  std::memcpy(&args, parameters[0], sizeof(args));
  check_arguments(args, blocks);
  const auto kernel = reinterpret_cast<HostKernel>(function);
  const std::uint64_t seed = machine().seed.load() + args.launch;
  machine().stream(stream)->enqueue([=] { run_kernel(kernel, args, blocks, seed); });
  return kOk;
}

FAKE cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes) {
  FAKE_CUDA_ALIVE();
  void* memory = nullptr;
  const int result = allocate(&memory, bytes, false);
  *pointer = reinterpret_cast<std::uintptr_t>(memory);
  return result;
}
FAKE cuMemFree_v2(unsigned long long pointer) {
  FAKE_CUDA_ALIVE();
  return release(pointer, false);
}
FAKE cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  FAKE_CUDA_ALIVE();
  return allocate(pointer, bytes, (flags & 2U) != 0);
}
FAKE cuMemHostGetDevicePointer_v2(unsigned long long* device, void* host, unsigned flags) {
  FAKE_CUDA_ALIVE();
  if (flags != 0) return kInvalidValue;
  must_be_mapped(host, 1, "host memory");
  *device = reinterpret_cast<std::uintptr_t>(host);
  return kOk;
}
FAKE cuMemFreeHost(void* pointer) {
  FAKE_CUDA_ALIVE();
  return release(reinterpret_cast<std::uintptr_t>(pointer), true);
}
FAKE cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void* stream) {
  return copy(memory_at(to), from, bytes, stream);
}
FAKE cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void* stream) {
  return copy(to, memory_at(from), bytes, stream);
}
FAKE cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes, void* stream) {
  return copy(memory_at(to), memory_at(from), bytes, stream);
}
FAKE cuMemsetD8Async(unsigned long long to, unsigned char value, std::size_t bytes, void* stream) {
  FAKE_CUDA_ALIVE();
  machine().stream(stream)->enqueue([=] {
    must_live(memory_at(to), bytes, "memset: target");
    std::memset(memory_at(to), value, bytes);
  });
  return kOk;
}

FAKE cuEventCreate(void** event, unsigned) {
  FAKE_CUDA_ALIVE();
  Machine& all = machine();
  auto made = std::make_shared<Event>();
  *event = made.get();
  const std::lock_guard lock(all.mutex);
  all.events[*event] = std::move(made);
  return kOk;
}
FAKE cuEventRecord(void* handle, void* stream) {
  FAKE_CUDA_ALIVE();
  const auto event = machine().event(handle);
  const auto on = machine().stream(stream);
  bool captures = false;
  {
    const std::lock_guard lock(machine().mutex);
    captures = on->graph != nullptr;
  }
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(event->mutex);
    event->captured = captures;
    if (captures) return kOk;
    number = ++event->recorded;
  }
  on->enqueue(
      [event, number] {
        const std::lock_guard lock(event->mutex);
        event->completed = std::max(event->completed, number);
        event->changed.notify_all();
      },
      true);
  return kOk;
}
FAKE cuEventQuery(void* handle) {
  FAKE_CUDA_ALIVE();
  if (!may_call_unsafe()) return kCaptureUnsupported;
  const auto event = machine().event(handle);
  const std::lock_guard lock(event->mutex);
  if (event->captured) return kCapturedEvent;
  return unless_lost(event->completed == event->recorded ? kOk : kNotReady);
}
FAKE cuEventSynchronize(void* handle) {
  FAKE_CUDA_ALIVE();
  if (!may_call_unsafe()) return kCaptureUnsupported;
  const auto event = machine().event(handle);
  std::unique_lock lock(event->mutex);
  if (event->captured) return kCapturedEvent;
  const std::uint64_t wanted = event->recorded;
  event->changed.wait(lock, [&] { return event->completed >= wanted; });
  return unless_lost(kOk);
}
FAKE cuEventDestroy_v2(void* handle) {
  FAKE_CUDA_ALIVE();
  machine().event(handle);
  const std::lock_guard lock(machine().mutex);
  machine().events.erase(handle);
  return kOk;
}

FAKE cuStreamCreate(void** stream, unsigned) {
  FAKE_CUDA_ALIVE();
  *stream = machine().add_stream();
  return kOk;
}
FAKE cuStreamCreateWithPriority(void** stream, unsigned flags, int) { return cuStreamCreate(stream, flags); }
FAKE cuStreamDestroy_v2(void* handle) {
  FAKE_CUDA_ALIVE();
  if (handle == nullptr) die("the default stream cannot be destroyed");
  const auto stream = machine().stream(handle);
  stream->retire();
  const std::lock_guard lock(machine().mutex);
  machine().streams.erase(handle);
  return kOk;
}
FAKE cuStreamQuery(void* handle) {
  FAKE_CUDA_ALIVE();
  return unless_lost(machine().stream(handle)->is_idle() ? kOk : kNotReady);
}
FAKE cuStreamSynchronize(void* handle) {
  FAKE_CUDA_ALIVE();
  const auto stream = machine().stream(handle);
  {
    const std::lock_guard lock(machine().mutex);
    if (stream->graph != nullptr) {
      machine().spoiled = true;
      return kCaptureUnsupported;
    }
  }
  stream->wait_idle();
  return unless_lost(kOk);
}
FAKE cuStreamWaitEvent(void* handle, void* event_handle, unsigned) {
  FAKE_CUDA_ALIVE();
  const auto event = machine().event(event_handle);
  std::uint64_t wanted = 0;
  {
    const std::lock_guard lock(event->mutex);
    wanted = event->recorded;
  }
  machine().stream(handle)->enqueue([event, wanted] {
    std::unique_lock lock(event->mutex);
    event->changed.wait(lock, [&] { return event->completed >= wanted; });
  });
  return kOk;
}
FAKE cuStreamIsCapturing(void* handle, int* status) {
  FAKE_CUDA_ALIVE();
  const auto stream = machine().stream(handle);
  const std::lock_guard lock(machine().mutex);
  *status = stream->graph == nullptr ? 0 : machine().spoiled ? 2 : 1;
  return kOk;
}
FAKE cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode());
  return unless_lost(kOk);
}

FAKE cuGetErrorName(int result, const char** name) {
  *name = result == kAssert     ? "CUDA_ERROR_ASSERT"
          : result == kNotFound ? "CUDA_ERROR_NOT_FOUND"
          : result == kNotReady ? "CUDA_ERROR_NOT_READY"
          : result == kOk       ? "CUDA_SUCCESS"
                                : "CUDA_ERROR_UNKNOWN";
  return kOk;
}
FAKE cuGetErrorString(int result, const char** text) {
  *text = result == kAssert ? "device-side assert triggered" : result == kOk ? "no error" : "error";
  return kOk;
}

extern "C" {

void fake_cuda_seed(uint64_t seed) { machine().seed.store(seed); }

void fake_cuda_enqueue(void* stream, void (*run)(void*), void* data) {
  if (run == nullptr) die("enqueue: no function");
  machine().stream(stream)->enqueue([=] { run(data); });
}

void fake_cuda_poison(void) { machine().lost.store(true); }
int fake_cuda_poisoned(void) { return machine().lost.load() ? 1 : 0; }

void fake_cuda_reset(void) {
  machine().wait_idle();
  machine().lost.store(false);
}

long fake_cuda_launches(void) { return machine().launches.load(); }

void fake_cuda_capture_begin(void* handle) {
  const auto stream = machine().stream(handle);
  const std::lock_guard lock(machine().mutex);
  if (stream->graph != nullptr) die("capture: the stream captures already");
  stream->graph = std::make_shared<Graph>();
  stream->graph->owner = std::this_thread::get_id();
  machine().spoiled = false;
}

void* fake_cuda_capture_end(void* handle) {
  const auto stream = machine().stream(handle);
  const std::lock_guard lock(machine().mutex);
  if (stream->graph == nullptr) die("capture: the stream does not capture");
  auto graph = std::move(stream->graph);
  stream->graph = nullptr;
  if (machine().spoiled) return nullptr;
  machine().graphs.push_back(graph);
  return graph.get();
}

void fake_cuda_replay(void* graph, void* stream) {
  std::shared_ptr<Graph> found;
  {
    const std::lock_guard lock(machine().mutex);
    for (const auto& one : machine().graphs) {
      if (one.get() == graph) found = one;
    }
  }
  if (found == nullptr) die("replay: graph %p does not exist", graph);
  for (const Operation& operation : found->operations) machine().stream(stream)->enqueue(operation);
}

}  // extern "C"
