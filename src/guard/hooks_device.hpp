// What the hooks do when the next kernel is the device's own.
#pragma once

#include <ATen/core/stack.h>

#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "guard/device_check.hpp"
#include "guard/device_faults.hpp"
#include "guard/device_stream.hpp"
#include "guard/state.hpp"

namespace torch {
class Library;
}

namespace trapline::guard {

// Whether the operation brings values to the host.
bool is_read(const std::string& op);

// Hooks the operations that do and that no row guards.
void hook_reads(torch::Library& library);

// Whether a list of indices among the call's arguments holds a mask.
bool has_mask(const Plan& plan, const torch::jit::Stack& stack);

// Runs the operation itself. When it fails because the device is lost, the cause may be known; when it
// refuses the call by itself, what the checks of its arguments find is no cause of anything.
template <class Run>
auto on_device(ThreadState& state, const Run& run, const CheckedCall& call = {nullptr, true})
    -> decltype(run()) {
  try {
    const DepthScope depth(state, call.applied);
    return run();
  } catch (const std::exception& error) {
    const char* text = error.what();
    if (std::strstr(text, "CUDA error") != nullptr || std::strstr(text, "device-side assert") != nullptr)
      raise_instead(state);
    else if (call.facts != nullptr)
      disown(*call.facts);
    throw;
  }
}

// A guarded call on the device whose arguments lie on the stack.
template <class Run>
void call_on_device(ThreadState& state, const Plan& plan, torch::jit::Stack& stack, const Run& run) {
  const CheckedCall call = check_on_device(state, plan, stack);
  const bool reads = plan.reads || (plan.counts_masks && has_mask(plan, stack));
  on_device(state, run, call);
  if (reads) raise_late(state, FaultScope::kAny);
}

}  // namespace trapline::guard
