// What the kernels of CUDA assert, written from PyTorch's sources and not from Trapline's table.
#pragma once

#include <ATen/core/stack.h>

#include <string>

namespace trapline::cpu_cuda {

// The line that CUDA prints when the operation's kernel asserts, or reads or writes out of bounds, on these
// arguments (all in host memory); empty when it does neither.
using AssertCheck = std::string (*)(const torch::jit::Stack& arguments);

// Null where no kernel of the operation asserts anything of its data.
AssertCheck assert_check(const std::string& op);

}  // namespace trapline::cpu_cuda
