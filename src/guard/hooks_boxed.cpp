#include <ATen/core/dispatch/Dispatcher.h>

#include "guard/answer.hpp"
#include "guard/check.hpp"
#include "guard/hooks.hpp"

namespace trapline::guard {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using torch::jit::Stack;

Argument view_of(const c10::IValue& value) {
  Argument argument;
  if (value.isTensor()) {
    argument.kind = TRAPLINE_ARG_TENSOR;
    argument.tensor = &value.toTensor();
  } else if (value.isInt() || value.isBool()) {
    argument.kind = TRAPLINE_ARG_INT;
    argument.integer = value.isBool() ? static_cast<std::int64_t>(value.toBool()) : value.toInt();
  } else if (value.isList()) {
    argument.kind = TRAPLINE_ARG_LIST;
    argument.list = value.toListRef();
  }
  return argument;
}

bool violates(ThreadState& state, const Plan& plan, const Stack& stack, Violation& violation) {
  const std::size_t count = plan.handle.schema().arguments().size();
  const c10::IValue* values = stack.data() + (stack.size() - count);
  Argument arguments[kMaxArguments];
  for (const std::int8_t at : plan.needed) arguments[at] = view_of(values[at]);
  return check_call(state, plan, arguments, violation);
}

void check_stack(ThreadState& state, const Plan& plan, Stack& stack) {
  Violation violation;
  if (violates(state, plan, stack, violation)) answer_call(state, plan, violation, stack);
}

class Boxed final : public c10::OperatorKernel {
 public:
  explicit Boxed(const Plan& plan) : plan_(plan) {}

  void operator()(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
    keys = keys & kBelow;
    ThreadState& state = t_state;
    if (!enabled() || !outermost(state) || !reaches_dense_cpu(keys)) return op.redispatchBoxed(keys, stack);
    check_stack(state, plan_, *stack);
    const DepthScope depth(state);
    op.redispatchBoxed(keys, stack);
  }

 private:
  const Plan& plan_;
};

class Composite final : public c10::OperatorKernel {
 public:
  explicit Composite(const Plan& plan) : plan_(plan) {}

  void operator()(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
    // The decomposition is what the dispatcher has at CPU too, since the operation has no CPU kernel of its
    // own. It starts from the top again for what it calls, whatever keys it is called with. Under a tracer
    // that has PythonDispatcher on, Python may hold another decomposition, and is asked for it.
    DispatchKeySet decomposition(DispatchKey::CPU);
    if (keys.has(DispatchKey::PythonDispatcher))
      decomposition = decomposition.add(DispatchKey::PythonDispatcher);
    const DispatchKeySet below = (keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::AutogradCPU))
                                     .remove(DispatchKey::ADInplaceOrView)
                                     .remove(DispatchKey::BackendSelect);
    ThreadState& state = t_state;
    if (!enabled() || !outermost(state) || !reaches_dense_cpu(below)) {
      return op.redispatchBoxed(decomposition, stack);
    }
    check_stack(state, plan_, *stack);
    const DepthScope depth(state);
    op.redispatchBoxed(decomposition, stack);
  }

 private:
  const Plan& plan_;
};

}  // namespace

void answer_call(ThreadState& state, const Plan& plan, Violation violation, Stack& stack) {
  const std::size_t count = plan.handle.schema().arguments().size();
  c10::IValue* values = stack.data() + (stack.size() - count);
  // Each round heals one tensor, and no call has more of them to check.
  const std::size_t most = plan.rows.size() * kMaxList;
  for (std::size_t round = 0; round < most; ++round) {
    answer_violation(state, plan, violation, values);
    if (!violates(state, plan, stack, violation)) return;
  }
  TORCH_CHECK(false, "trapline: guard: ", plan.op, ": its arguments cannot be healed: use --on-fault raise");
}

void hook_boxed(torch::Library& library, const Plan& plan) {
  library.impl(plan.impl_name.c_str(),
               torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Boxed>(plan)));
}

void hook_composite(torch::Library& autograd, const Plan& plan) {
  const bool decomposes = plan.handle.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
                          !plan.handle.hasKernelForDispatchKey(DispatchKey::CPU) &&
                          !plan.handle.hasKernelForDispatchKey(DispatchKey::AutogradCPU);
  if (!decomposes) return;
  autograd.impl(plan.impl_name.c_str(),
                torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Composite>(plan)));
}

}  // namespace trapline::guard
