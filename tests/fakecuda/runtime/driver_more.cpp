// Entry points of the driver that PyTorch links or asks for by name, and Trapline itself does not use.
#include <dlfcn.h>

#include <cstring>

#include "runtime.hpp"

using namespace fakecuda;
using namespace fakecuda::runtime;

namespace {

constexpr int kUnsupported = 801;  // CUDA_ERROR_NOT_SUPPORTED

int unsupported() { return kUnsupported; }

// PyTorch can do without these, and does.
bool may_be_missing(const char* name) {
  return std::strstr(name, "GreenCtx") != nullptr || std::strstr(name, "Multicast") != nullptr ||
         std::strstr(name, "DevRes") != nullptr || std::strstr(name, "SmRes") != nullptr;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device);
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = is_active(device) ? 1 : 0;
  return 0;
}

#define FAKE_UNSUPPORTED(name) \
  int name() { return unsupported(); }
FAKE_UNSUPPORTED(cuFuncGetAttribute)
FAKE_UNSUPPORTED(cuFuncSetAttribute)
FAKE_UNSUPPORTED(cuFuncSetCacheConfig)
FAKE_UNSUPPORTED(cuLaunchCooperativeKernel)
FAKE_UNSUPPORTED(cuLinkAddData_v2)
FAKE_UNSUPPORTED(cuLinkComplete)
FAKE_UNSUPPORTED(cuLinkCreate_v2)
FAKE_UNSUPPORTED(cuModuleLoad)
FAKE_UNSUPPORTED(cuModuleUnload)
FAKE_UNSUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
FAKE_UNSUPPORTED(cuPointerGetAttribute)
FAKE_UNSUPPORTED(cuTensorMapEncodeTiled)

}  // extern "C"
#pragma GCC visibility pop

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  *function = dlsym(RTLD_DEFAULT, name);
  if (*function == nullptr && !may_be_missing(name)) *function = reinterpret_cast<void*>(&unsupported);
  if (status != nullptr)
    *status = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
