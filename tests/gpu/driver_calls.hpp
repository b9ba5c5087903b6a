// The driver API as the GPU programs use it: loaded at run time, so that they build everywhere.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace trapline::gpu {

using Handle = void*;
using DevicePointer = unsigned long long;

inline constexpr int kLeftOut = 77;  // the exit status of a program that this machine cannot run

[[noreturn]] inline void leave_out(const char* why) {
  std::printf("left out: %s\n", why);
  std::exit(kLeftOut);
}

#define TRAPLINE_GPU_CALLS(X)                                                                  \
  X(init, "cuInit", (unsigned))                                                                \
  X(device_get, "cuDeviceGet", (int*, int))                                                    \
  X(device_get_name, "cuDeviceGetName", (char*, int, int))                                     \
  X(primary_ctx_retain, "cuDevicePrimaryCtxRetain", (Handle*, int))                            \
  X(ctx_set_current, "cuCtxSetCurrent", (Handle))                                              \
  X(mem_alloc, "cuMemAlloc_v2", (DevicePointer*, std::size_t))                                 \
  X(copy_to_device, "cuMemcpyHtoDAsync_v2", (DevicePointer, const void*, std::size_t, Handle)) \
  X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void*, DevicePointer, std::size_t, Handle))         \
  X(memset_bytes, "cuMemsetD8Async", (DevicePointer, unsigned char, std::size_t, Handle))      \
  X(stream_create, "cuStreamCreate", (Handle*, unsigned))                                      \
  X(stream_synchronize, "cuStreamSynchronize", (Handle))                                       \
  X(module_load_data, "cuModuleLoadData", (Handle*, const void*))                              \
  X(module_get_function, "cuModuleGetFunction", (Handle*, Handle, const char*))                \
  X(launch_kernel, "cuLaunchKernel",                                                           \
    (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**))

// Null where the driver has none.
#define TRAPLINE_GPU_OPTIONAL_CALLS(X)                                                       \
  X(begin_capture, "cuStreamBeginCapture_v2", (Handle, int))                                 \
  X(end_capture, "cuStreamEndCapture", (Handle, Handle*))                                    \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", (Handle*, Handle, unsigned long long)) \
  X(graph_launch, "cuGraphLaunch", (Handle, Handle))

struct Calls {
#define TRAPLINE_GPU_MEMBER(member, name, parameters) int(*member) parameters = nullptr;
  TRAPLINE_GPU_CALLS(TRAPLINE_GPU_MEMBER)
  TRAPLINE_GPU_OPTIONAL_CALLS(TRAPLINE_GPU_MEMBER)
#undef TRAPLINE_GPU_MEMBER
};

// Ends the program as left out where there is no driver or no device.
inline const Calls& calls() {
  static const Calls kCalls = [] {
    const char* named = std::getenv("TRAPLINE_CUDA_DRIVER");
    void* library = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) leave_out("there is no CUDA driver here");
    Calls loaded;
#define TRAPLINE_GPU_LOAD(member, name, parameters) \
  loaded.member = reinterpret_cast<int(*) parameters>(dlsym(library, name));
    TRAPLINE_GPU_CALLS(TRAPLINE_GPU_LOAD)
    TRAPLINE_GPU_OPTIONAL_CALLS(TRAPLINE_GPU_LOAD)
#undef TRAPLINE_GPU_LOAD
#define TRAPLINE_GPU_DEMAND(member, name, parameters) \
  if (loaded.member == nullptr) leave_out("the CUDA driver has no " name);
    TRAPLINE_GPU_CALLS(TRAPLINE_GPU_DEMAND)
#undef TRAPLINE_GPU_DEMAND
    int device = 0;
    Handle context = nullptr;
    if (loaded.init(0) != 0 || loaded.device_get(&device, 0) != 0) leave_out("there is no CUDA device here");
    if (loaded.primary_ctx_retain(&context, device) != 0 || loaded.ctx_set_current(context) != 0) {
      leave_out("the CUDA device has no context for this process");
    }
    char name[128] = "";
    loaded.device_get_name(name, sizeof(name), device);
    std::printf("device: %s\n", name);
    return loaded;
  }();
  return kCalls;
}

inline void must(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "failed: %s: error %d\n", what, result);
  std::exit(1);
}
#define MUST(call) ::trapline::gpu::must(call, #call)

}  // namespace trapline::gpu
