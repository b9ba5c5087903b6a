// A device whose memory is the host's (trapline run --cpu): its tensors are guarded as those of the CPU, at
// once.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>

namespace trapline::guard {

// CUDA where `trapline run --cpu` has put its device (TRAPLINE_DEVICE_TYPE=host); else Undefined. Set by
// choose_device().
inline c10::DispatchKey g_host_key = c10::DispatchKey::Undefined;

// There is such a device, and its memory holds values now: while a stream captures a graph, they come with
// the graph's replays, which pass by the guard, too.
bool is_host_device_ready();

inline bool in_host_memory(const at::Tensor& tensor) {
  return tensor.device().is_cpu() || (g_host_key != c10::DispatchKey::Undefined && tensor.is_cuda());
}

// The arguments with each tensor of that device replaced by one of the CPU on the same memory, valid as long
// as the arguments are: so the CPU's own kernel can be asked, which has no context to lose.
torch::jit::Stack on_cpu(c10::ArrayRef<c10::IValue> arguments);

}  // namespace trapline::guard
