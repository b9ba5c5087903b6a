// Devices: how many, which is current, what they say of themselves.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime.hpp"

using namespace fakecuda;
using namespace fakecuda::runtime;

extern "C" {
int cuCtxGetCurrent(void** context);
int cuCtxSetCurrent(void* context);
int cuCtxSynchronize();
int cuDevicePrimaryCtxRetain(void** context, int device);
}

namespace {

std::atomic<bool> g_active[kMaxDevices];

void* context_of(int device) {
  void* context = nullptr;
  cuDevicePrimaryCtxRetain(&context, device);
  return context;
}

bool exists(int device) { return device >= 0 && device < device_count(); }

constexpr int kMajor = 9, kMinor = 0;  // no operation of PyTorch's is refused for the device's age

}  // namespace

int runtime::device_count() {
  static const int count = [] {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible == nullptr) return 1;
    const std::string list = visible;
    if (list.empty() || list[0] == '-') return 0;
    return std::min(static_cast<int>(std::count(list.begin(), list.end(), ',')) + 1, kMaxDevices);
  }();
  return count;
}

int runtime::current_device() {
  void* context = nullptr;
  cuCtxGetCurrent(&context);
  for (int device = 0; device < kMaxDevices; ++device) {
    if (context != nullptr && context == context_of(device)) return device;
  }
  return 0;
}

void runtime::make_active(int device) { g_active[device].store(true); }
bool runtime::is_active(int device) { return exists(device) && g_active[device].load(); }

cudaError_t runtime::not_supported(const char* what) {
  std::fprintf(stderr, "fake_cuda: %s is not there: this is a stand-in for the CUDA runtime\n", what);
  return note(cudaErrorNotSupported);
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  if (*count == 0) return note(cudaErrorNoDevice);
  load_kernels();
  FAKE_RT_ALIVE();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return note(cudaErrorInvalidDevice);
  cuCtxSetCurrent(context_of(device));
  FAKE_RT_ALIVE();
  load_kernels();
  make_active(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return note(cuCtxSynchronize()); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  if (!exists(device)) return note(cudaErrorInvalidDevice);
  *out = {};
  std::snprintf(out->name, sizeof(out->name), "no GPU (Trapline's stand-in for CUDA)");
  out->uuid.bytes[0] = static_cast<char>(device + 1);
  size_t free = 0;
  cudaMemGetInfo(&free, &out->totalGlobalMem);
  out->sharedMemPerBlock = 48U << 10U;
  out->sharedMemPerBlockOptin = 227U << 10U;
  out->sharedMemPerMultiprocessor = 228U << 10U;
  out->regsPerBlock = out->regsPerMultiprocessor = 65536;
  out->warpSize = 32;
  out->memPitch = 0x7fffffff;
  out->maxThreadsPerBlock = 1024;
  out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024;
  out->maxThreadsDim[2] = 64;
  out->maxGridSize[0] = 0x7fffffff;
  out->maxGridSize[1] = out->maxGridSize[2] = 65535;
  out->totalConstMem = 65536;
  out->major = kMajor;
  out->minor = kMinor;
  out->textureAlignment = 512;
  out->multiProcessorCount = 4;
  out->canMapHostMemory = out->concurrentKernels = out->unifiedAddressing = 1;
  out->asyncEngineCount = 2;
  out->pciBusID = device + 1;
  out->memoryBusWidth = 128;
  out->l2CacheSize = 4 << 20;
  out->maxThreadsPerMultiProcessor = 2048;
  out->maxBlocksPerMultiProcessor = 32;
  out->streamPrioritiesSupported = 1;
  out->cooperativeLaunch = out->hostRegisterSupported = out->clusterLaunch = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp all;
  if (const cudaError_t error = cudaGetDeviceProperties(&all, device); error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return *value = all.maxThreadsPerBlock, cudaSuccess;
    case cudaDevAttrMaxGridDimX:
      return *value = all.maxGridSize[0], cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return *value = static_cast<int>(all.sharedMemPerBlock), cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return *value = static_cast<int>(all.sharedMemPerBlockOptin), cudaSuccess;
    case cudaDevAttrWarpSize:
      return *value = all.warpSize, cudaSuccess;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return *value = all.regsPerBlock, cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      return *value = all.multiProcessorCount, cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return *value = all.maxThreadsPerMultiProcessor, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = kMajor, cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = kMinor, cudaSuccess;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      return *value = 1000000, cudaSuccess;
    case cudaDevAttrGlobalMemoryBusWidth:
      return *value = all.memoryBusWidth, cudaSuccess;
    case cudaDevAttrL2CacheSize:
      return *value = all.l2CacheSize, cudaSuccess;
    case cudaDevAttrPciBusId:
      return *value = all.pciBusID, cudaSuccess;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
      return *value = 1, cudaSuccess;
    default:
      return *value = 0, cudaSuccess;
  }
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (!exists(device)) return note(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!exists(device) || !exists(peer)) return note(cudaErrorInvalidDevice);
  *can = device != peer ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return exists(peer) ? cudaSuccess : note(cudaErrorInvalidDevice);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// Declared in a header of its own.
#pragma GCC visibility push(default)
extern "C" cudaError_t cudaProfilerStart() { return cudaSuccess; }
extern "C" cudaError_t cudaProfilerStop() { return cudaSuccess; }
#pragma GCC visibility pop
