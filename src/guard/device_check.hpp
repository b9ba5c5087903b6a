// One guarded call on the device: enqueues the checks of its arguments on the operation's own stream and
// hands it healed copies.
#pragma once

#include <ATen/core/stack.h>

#include <memory>

#include "guard/plan.hpp"
#include "guard/state.hpp"

namespace trapline::guard {

struct CallFacts;

struct CheckedCall {
  std::shared_ptr<const CallFacts> facts;  // where one of its checks is on its way, else null
  bool applied = false;                    // any row: what the operation calls need not be checked again
};

// The call's arguments are the last on the stack; checked ones are replaced there. Raises a fault that this
// thread caused before, and what is known to be wrong at once. Anything that goes wrong in here leaves the
// call as it is.
CheckedCall check_on_device(ThreadState& state, const Plan& plan, torch::jit::Stack& stack);

struct DeviceCounts {
  std::uint64_t calls, launches, reused, uncopied;  // guarded calls, checks, copies used again, above the cap
};
DeviceCounts device_counts();

}  // namespace trapline::guard
