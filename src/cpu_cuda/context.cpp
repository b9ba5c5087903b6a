#include "cpu_cuda/context.hpp"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace trapline::cpu_cuda {
namespace {

std::atomic<bool> g_lost{false};
void (*g_when_lost)() = nullptr;
void (*g_when_restored)() = nullptr;

}  // namespace

bool launches_block() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value != nullptr && *value == '1';
}

void throw_cuda_error(int code, const char* name, const char* text) {
  std::string message = std::string("CUDA error: ") + text + "\nSearch for `" + name +
                        "' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for "
                        "more information.\n";
  if (!launches_block())
    message +=
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
        "might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n";
  message += "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n";
  throw c10::AcceleratorError({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, code,
                              std::move(message));
}

void check_context() {
  if (g_lost.load(std::memory_order_relaxed))
    throw_cuda_error(710, "cudaErrorAssert", "device-side assert triggered");
}

void lose_context(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  g_lost.store(true);
  if (g_when_lost != nullptr) g_when_lost();
}

void follow_context(void (*lost)(), void (*restored)()) {
  g_when_lost = lost;
  g_when_restored = restored;
}

bool context_lost() noexcept { return g_lost.load(); }

void restore_context() noexcept {
  if (g_when_restored != nullptr) g_when_restored();
  g_lost.store(false);
}

}  // namespace trapline::cpu_cuda
