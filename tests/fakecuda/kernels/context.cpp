// The context is the stand-in's own; its loss is said in the words of PyTorch's own check.
#include "cpu_cuda/context.hpp"

#include <c10/cuda/CUDAException.h>

#include <cstdio>
#include <cstdlib>

#include "fake_cuda.h"

namespace trapline::cpu_cuda {

bool launches_block() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value != nullptr && *value == '1';
}

void check_context() {
  if (fake_cuda_poisoned() != 0) C10_CUDA_CHECK(cudaErrorAssert);
}

void lose_context(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  fake_cuda_poison();
}

bool context_lost() noexcept { return fake_cuda_poisoned() != 0; }

}  // namespace trapline::cpu_cuda
