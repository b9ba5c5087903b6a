// The CUDA driver as Trapline uses it: loaded at run time, so that nothing links against CUDA and a machine
// without it loses nothing. The types are the driver API's own, declared here because its header may be
// missing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace trapline::cuda {

using Result = int;  // CUresult
inline constexpr Result kSuccess = 0;
inline constexpr Result kNotReady = 600;
using Handle = void*;                      // CUcontext, CUmodule, CUfunction, CUstream, CUevent
using DevicePointer = unsigned long long;  // CUdeviceptr

// The driver's addresses are numbers; kernels take them as pointers, which the host never follows.
template <class T>
T* pointer_to(DevicePointer address) {
  return std::bit_cast<T*>(static_cast<std::uintptr_t>(address));
}

inline constexpr unsigned kHostAllocPortableMapped = 0x01U | 0x02U;
inline constexpr unsigned kStreamNonBlocking = 0x01U;
inline constexpr unsigned kEventDisableTiming = 0x02U;
inline constexpr int kCaptureModeRelaxed = 2;

// Name in the table, name in the library, parameters. The library keeps old ABIs under the plain names, so
// the suffix is part of the name where the header of the driver API would add it.
#define TRAPLINE_CUDA_CALLS(X)                                                                              \
  X(ctx_get_current, "cuCtxGetCurrent", (Handle*))                                                          \
  X(ctx_set_current, "cuCtxSetCurrent", (Handle))                                                           \
  X(module_load_data, "cuModuleLoadData", (Handle*, const void*))                                           \
  X(module_get_function, "cuModuleGetFunction", (Handle*, Handle, const char*))                             \
  X(launch_kernel, "cuLaunchKernel",                                                                        \
    (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**)) \
  X(mem_host_alloc, "cuMemHostAlloc", (void**, std::size_t, unsigned))                                      \
  X(mem_host_get_device_pointer, "cuMemHostGetDevicePointer_v2", (DevicePointer*, void*, unsigned))         \
  X(event_create, "cuEventCreate", (Handle*, unsigned))                                                     \
  X(event_record, "cuEventRecord", (Handle, Handle))                                                        \
  X(event_query, "cuEventQuery", (Handle))                                                                  \
  X(event_synchronize, "cuEventSynchronize", (Handle))                                                      \
  X(stream_create, "cuStreamCreate", (Handle*, unsigned))                                                   \
  X(stream_destroy, "cuStreamDestroy_v2", (Handle))                                                         \
  X(stream_synchronize, "cuStreamSynchronize", (Handle))                                                    \
  X(thread_exchange_stream_capture_mode, "cuThreadExchangeStreamCaptureMode", (int*))                       \
  X(get_error_name, "cuGetErrorName", (Result, const char**))

struct Driver {
#define TRAPLINE_CUDA_MEMBER(member, name, parameters) Result(*member) parameters = nullptr;
  TRAPLINE_CUDA_CALLS(TRAPLINE_CUDA_MEMBER)
#undef TRAPLINE_CUDA_MEMBER

  // "CUDA_ERROR_ASSERT (710)".
  std::string name_of(Result result) const;
};

// Loads libcuda.so.1, or the file that TRAPLINE_CUDA_DRIVER names. The library is never unloaded. On failure
// false, and why in one line.
bool load_driver(Driver& driver, std::string& why);

// The context is lost: no call for it will succeed again.
bool is_sticky(Result result);

}  // namespace trapline::cuda
