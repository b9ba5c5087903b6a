// Dtypes that CUDA's kernels have and the CPU's have not, and the other way round.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace trapline::cpu_cuda {

// Makes the call by other means and leaves its results on the stack, or throws what CUDA throws; false: the
// call is as the CPU has it.
using Adapter = bool (*)(const c10::OperatorHandle& op, torch::jit::Stack& stack);

// Null where CUDA and the CPU take the same dtypes.
Adapter adapter(const std::string& op);

}  // namespace trapline::cpu_cuda
