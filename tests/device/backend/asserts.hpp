// What the kernels of CUDA assert, written from PyTorch's sources and not from Trapline's table.
#pragma once

#include <ATen/core/stack.h>

#include <string>

namespace fakedev {

// True when the operation's kernel would assert, or read or write out of bounds, on these arguments (all in
// host memory).
bool would_assert(const std::string& op, const torch::jit::Stack& arguments);

}  // namespace fakedev
