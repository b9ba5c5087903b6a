// Kernels that NVIDIA's compilers made: their names are kept, their code is never looked at, and a launch
// fails with the name. PyTorch's operations are answered by kernels of the CPU on its CUDA key instead.
#include <cxxabi.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime.hpp"

using namespace fakecuda;
using namespace fakecuda::runtime;

namespace {

struct Names {
  std::mutex mutex;
  std::unordered_map<const void*, const char*> by_host;
};

Names& names() {
  static auto* const kNames = new Names;
  return *kNames;
}

std::string readable(const char* symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string out = text != nullptr ? text : symbol;
  std::free(text);
  return out;
}

cudaError_t refuse(const void* host) {
  FAKE_RT_ALIVE();
  const char* symbol = nullptr;
  {
    const std::lock_guard lock(names().mutex);
    const auto found = names().by_host.find(host);
    if (found != names().by_host.end()) symbol = found->second;
  }
  std::fprintf(stderr, "fake_cuda: no stand-in for the kernel %s\n",
               symbol != nullptr ? readable(symbol).c_str() : "(never registered)");
  return note(cudaErrorInvalidDeviceFunction);
}

struct Configuration {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local Configuration t_configuration;

cudaError_t one_block(int* blocks) {
  *blocks = 1;
  return cudaSuccess;
}

}  // namespace

void runtime::load_kernels() {
  static std::atomic<bool> asked{false};
  if (asked.exchange(true)) return;
  const char* path = std::getenv("FAKE_CUDA_KERNELS");
  if (path == nullptr || *path == '\0') return;
  if (dlopen(path, RTLD_NOW | RTLD_LOCAL) == nullptr)
    std::fprintf(stderr, "fake_cuda: PyTorch's operations have no kernels: %s\n", dlerror());
}

#pragma GCC visibility push(default)
extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
  const std::lock_guard lock(names().mutex);
  names().by_host[host] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  t_configuration = {grid, block, shared, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = t_configuration.grid;
  *block = t_configuration.block;
  *shared = t_configuration.shared;
  *static_cast<cudaStream_t*>(stream) = t_configuration.stream;
  return cudaSuccess;
}

// A kernel's handle is its host symbol.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuse(kernel);
}

}  // extern "C"
#pragma GCC visibility pop

cudaError_t cudaLaunchKernel(const void* host, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuse(host);
}
cudaError_t cudaLaunchCooperativeKernel(const void* host, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuse(host);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void* host, void**) { return refuse(host); }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  *out = {};
  out->maxThreadsPerBlock = 1024;
  out->binaryVersion = out->ptxVersion = 90;
  out->numRegs = 32;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute, int, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  return one_block(blocks);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, size_t,
                                                                   unsigned) {
  return one_block(blocks);
}

cudaError_t cudaGetSymbolAddress(void**, const void*) { return not_supported("cudaGetSymbolAddress"); }
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) {
  return not_supported("cudaMemcpyToSymbol");
}
cudaError_t cudaLibraryLoadData(cudaLibrary_t*, const void*, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return not_supported("cudaLibraryLoadData");
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t*, cudaLibrary_t, const char*) {
  return not_supported("cudaLibraryGetKernel");
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) { return cudaSuccess; }
