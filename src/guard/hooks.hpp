// Kernels on the BackendSelect key: directly above the backends, below autograd, autocast, functorch and
// modes, in every thread's default key set and empty for operations that take tensors. Nothing is overridden
// there, and operations without a hook pay nothing.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "guard/check.hpp"
#include "guard/host_device.hpp"
#include "guard/plan.hpp"
#include "guard/state.hpp"
#include "guard/trial.hpp"

namespace trapline::guard {

// What is left to dispatch to after BackendSelect. FULL_AFTER keeps PythonDispatcher, which redispatch needs.
inline const c10::DispatchKeySet kBelow{c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::BackendSelect};

// Only the dense kernels themselves are guarded, the CPU's here and at once, the device's by
// reaches_device() and late. This one test leaves out meta, fake, sparse, nested and quantized tensors, every
// other device, and tracing, whose PythonDispatcher key is not a kernel.
inline bool reaches_dense_cpu(c10::DispatchKeySet below) {
  const c10::DispatchKey next = below.remove(c10::DispatchKey::PythonDispatcher).highestPriorityTypeId();
  return next == c10::DispatchKey::CPU || (next == g_host_key && is_host_device_ready());
}

// One generic kernel for any overload.
void hook_boxed(torch::Library& library, const Plan& plan);

// For an operation that is decomposed above the backends and checks its arguments while doing so (one_hot): a
// kernel on the backend's autograd key that checks first and then runs the same decomposition.
void hook_composite(torch::Library& autograd, const Plan& plan, c10::DispatchKey autograd_key,
                    c10::DispatchKey backend_key);

// What follows a violation of the call whose arguments are the last on `stack`: throws, or returns with
// arguments that are in order, or that the operation takes.
void answer_call(ThreadState& state, const Plan& plan, Violation violation, torch::jit::Stack& stack,
                 Run run);

// A kernel of the operation's own signature, for the hottest; false when there is none for this overload.
bool hook_hot(torch::Library& library, const Plan& plan);

}  // namespace trapline::guard
