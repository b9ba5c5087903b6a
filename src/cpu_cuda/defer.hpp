// Calls whose work is done after they have returned: on a stream, or at the replays of a graph.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include <optional>

#include "cpu_cuda/plan.hpp"

namespace trapline::cpu_cuda {

// Sizes, strides and dtypes of a call's results, as tensors of the meta device; empty where they depend on
// the values, or where the call cannot be made at all.
std::optional<torch::jit::Stack> form_of(const c10::OperatorHandle& op, const Plan& plan,
                                         const torch::jit::Stack& arguments);

// Puts the call on the current stream, takes its arguments from the stack and leaves its results there, on
// `device`. False, and nothing is done, when it has to be made now: the stream has then done what it was
// given before. Throws what CUDA throws where this is not possible because the stream captures.
bool defer(const c10::OperatorHandle& op, const Plan& plan, c10::Device device, torch::jit::Stack& stack);

}  // namespace trapline::cpu_cuda
