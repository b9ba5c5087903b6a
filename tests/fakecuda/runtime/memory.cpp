// Device memory, page-locked memory, and the table of both.
#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "runtime.hpp"

using namespace fakecuda;
using namespace fakecuda::runtime;

namespace {

struct Table {
  std::mutex mutex;
  std::map<std::uintptr_t, Range> ranges;  // by their begin
  std::size_t used[kMaxDevices] = {};
};

Table& table() {
  static auto* const kTable = new Table;  // tensors may outlive static objects
  return *kTable;
}

std::size_t total_bytes() {
  static const std::size_t total = [] {
    const char* mib = std::getenv("FAKE_CUDA_MIB");
    return (mib != nullptr ? std::stoull(mib) : 8192ULL) << 20U;
  }();
  return total;
}

std::size_t pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// Pages of their own, so that what is used after it was freed ends the process.
cudaError_t take(void** out, std::size_t bytes, Where where) {
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  const int device = current_device();
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (where == Where::kDevice && all.used[device] + bytes > total_bytes()) return cudaErrorMemoryAllocation;
  void* address = mmap(nullptr, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return cudaErrorMemoryAllocation;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  all.ranges[begin] = {begin, bytes, where, device};
  if (where == Where::kDevice) all.used[device] += bytes;
  make_active(device);
  *out = address;
  return cudaSuccess;
}

cudaError_t give_back(void* address, Where where) {
  if (address == nullptr) return cudaSuccess;
  machine().wait_idle();
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.ranges.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == all.ranges.end() || found->second.where != where) return cudaErrorInvalidValue;
  if (where == Where::kDevice) all.used[found->second.device] -= found->second.bytes;
  if (where != Where::kRegistered) munmap(address, pages(found->second.bytes));
  all.ranges.erase(found);
  return cudaSuccess;
}

}  // namespace

std::optional<Range> runtime::find_range(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  auto after = all.ranges.upper_bound(at);
  if (after == all.ranges.begin()) return std::nullopt;
  --after;
  if (at >= after->second.begin + after->second.bytes) return std::nullopt;
  return after->second;
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  FAKE_RT_UNSAFE();
  load_kernels();
  return note(take(pointer, bytes, Where::kDevice));
}

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  FAKE_RT_UNSAFE();
  return note(give_back(pointer, Where::kDevice));
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) {
  FAKE_RT_ALIVE();
  return note(take(pointer, bytes, Where::kDevice));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
  FAKE_RT_ALIVE();
  return note(give_back(pointer, Where::kDevice));
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  FAKE_RT_UNSAFE();
  load_kernels();
  return note(take(pointer, bytes, Where::kPinned));
}

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  FAKE_RT_UNSAFE();
  return note(give_back(pointer, Where::kPinned));
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  FAKE_RT_UNSAFE();
  if (pointer == nullptr || bytes == 0) return note(cudaErrorInvalidValue);
  if (find_range(pointer)) return note(cudaErrorHostMemoryAlreadyRegistered);
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.ranges[begin] = {begin, bytes, Where::kRegistered, current_device()};
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  FAKE_RT_ALIVE();
  const cudaError_t result = give_back(pointer, Where::kRegistered);
  return note(result == cudaSuccess ? result : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = total_bytes();
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  *free = *total - all.used[current_device()];
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  FAKE_RT_ALIVE();
  *out = {};
  const std::optional<Range> range = find_range(pointer);
  auto* address = const_cast<void*>(pointer);
  if (!range) {
    out->type = cudaMemoryTypeUnregistered;
    out->device = -2;  // cudaInvalidDeviceId
    out->hostPointer = address;
    return cudaSuccess;
  }
  out->type = range->where == Where::kDevice ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  out->device = range->device;
  out->devicePointer = address;
  out->hostPointer = range->where == Where::kDevice ? nullptr : address;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int) { return not_supported("cudaMemPool"); }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return not_supported("cudaMemPool");
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return not_supported("cudaMemPool");
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return not_supported("cudaMemPool");
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return not_supported("cudaMemPool"); }

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) { return not_supported("cudaIpc"); }
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) { return not_supported("cudaIpc"); }
cudaError_t cudaIpcCloseMemHandle(void*) { return not_supported("cudaIpc"); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) { return not_supported("cudaIpc"); }
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) { return not_supported("cudaIpc"); }
