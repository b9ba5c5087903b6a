// Before a call on the CPU is given a finding: what PyTorch's own operation says of it.
#pragma once

#include <ATen/core/stack.h>
#include <c10/util/FunctionRef.h>

#include <string>

#include "guard/check.hpp"
#include "guard/plan.hpp"
#include "guard/state.hpp"

namespace trapline::guard {

// The operation itself, on the arguments that are the last on the stack.
using Run = c10::function_ref<void(torch::jit::Stack&)>;

struct Saying {
  bool is_fault = true;  // false: the operation looks at what it reads, and takes the call as it is
  std::string text;  // what it throws because of the bad values; "" where it says nothing, or was not asked
};

// Asks the operation twice at most: with the call's own arguments, where the contract says that it refuses
// bad values and does no harm with them, and with healed ones. What it would write to is copied before, and
// the random numbers it draws are put back.
//
// When it throws with healed arguments, too, its own check of something else ends this call on every device
// before a kernel reads a value: that exception is thrown here, and there is nothing to report.
Saying ask_operation(ThreadState& state, const Plan& plan, c10::ArrayRef<c10::IValue> given,
                     Run run_as_given);

}  // namespace trapline::guard
