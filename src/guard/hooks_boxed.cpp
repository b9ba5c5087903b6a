#include <ATen/core/dispatch/Dispatcher.h>

#include "guard/answer.hpp"
#include "guard/check.hpp"
#include "guard/hooks.hpp"
#include "guard/hooks_device.hpp"

namespace trapline::guard {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using torch::jit::Stack;

bool violates(ThreadState& state, const Plan& plan, const Stack& stack, Violation& violation) {
  const std::size_t count = plan.handle.schema().arguments().size();
  const c10::IValue* values = stack.data() + (stack.size() - count);
  Argument arguments[kMaxArguments];
  for (const std::int8_t at : plan.needed) arguments[at] = view_of(values[at]);
  return check_call(state, plan, arguments, violation);
}

// Whether a row applied.
bool check_stack(ThreadState& state, const Plan& plan, Stack& stack, DispatchKeySet below) {
  Violation violation;
  if (violates(state, plan, stack, violation)) {
    answer_call(state, plan, violation, stack,
                [&](Stack& arguments) { plan.handle.redispatchBoxed(below, &arguments); });
  }
  return violation.applied;
}

class Boxed final : public c10::OperatorKernel {
 public:
  explicit Boxed(const Plan& plan) : plan_(plan) {}

  void operator()(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
    keys = keys & kBelow;
    ThreadState& state = t_state;
    if (!enabled() || !outermost(state) || !reaches_dense_cpu(keys)) return elsewhere(state, op, keys, stack);
    const DepthScope depth(state, check_stack(state, plan_, *stack, keys));
    op.redispatchBoxed(keys, stack);
  }

 private:
  [[gnu::noinline]] void elsewhere(ThreadState& state, const c10::OperatorHandle& op, DispatchKeySet keys,
                                   Stack* stack) {
    if (!enabled() || !outermost(state) || !reaches_device(keys)) return op.redispatchBoxed(keys, stack);
    call_on_device(state, plan_, *stack, [&] { op.redispatchBoxed(keys, stack); });
  }

  const Plan& plan_;
};

class Composite final : public c10::OperatorKernel {
 public:
  Composite(const Plan& plan, DispatchKey autograd, DispatchKey backend)
      : plan_(plan), autograd_(autograd), backend_(backend) {}

  void operator()(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
    // The decomposition is what the dispatcher has at the backend too, since the operation has no kernel of
    // its own there. It starts from the top again for what it calls, whatever keys it is called with. Under a
    // tracer that has PythonDispatcher on, Python may hold another decomposition, and is asked for it.
    DispatchKeySet decomposition(backend_);
    if (keys.has(DispatchKey::PythonDispatcher))
      decomposition = decomposition.add(DispatchKey::PythonDispatcher);
    const DispatchKeySet below = (keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, autograd_))
                                     .remove(DispatchKey::ADInplaceOrView)
                                     .remove(DispatchKey::BackendSelect);
    ThreadState& state = t_state;
    if (!enabled() || !outermost(state)) return op.redispatchBoxed(decomposition, stack);
    if (reaches_device(below) && backend_ == g_device_key) {
      return call_on_device(state, plan_, *stack, [&] { op.redispatchBoxed(decomposition, stack); });
    }
    if (!reaches_dense_cpu(below)) return op.redispatchBoxed(decomposition, stack);
    const DepthScope depth(state, check_stack(state, plan_, *stack, decomposition));
    op.redispatchBoxed(decomposition, stack);
  }

 private:
  const Plan& plan_;
  const DispatchKey autograd_, backend_;
};

}  // namespace

void answer_call(ThreadState& state, const Plan& plan, Violation violation, Stack& stack, Run run) {
  const std::size_t count = plan.handle.schema().arguments().size();
  c10::IValue* values = stack.data() + (stack.size() - count);
  // Each round heals one tensor, and no call has more of them to check.
  const std::size_t most = plan.rows.size() * kMaxList;
  for (std::size_t round = 0; round < most; ++round) {
    const Saying saying = ask_operation(state, plan, c10::ArrayRef<c10::IValue>(values, count), run);
    if (!saying.is_fault) return;
    answer_violation(state, plan, violation, saying.text, values);
    if (!violates(state, plan, stack, violation)) return;
  }
  TORCH_CHECK(false, "trapline: guard: ", plan.op, ": its arguments cannot be healed: use --on-fault raise");
}

void hook_boxed(torch::Library& library, const Plan& plan) {
  library.impl(full_name(plan).c_str(),
               torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Boxed>(plan)));
}

void hook_composite(torch::Library& autograd, const Plan& plan, DispatchKey autograd_key,
                    DispatchKey backend_key) {
  const bool decomposes = plan.handle.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
                          !plan.handle.hasKernelForDispatchKey(backend_key) &&
                          !plan.handle.hasKernelForDispatchKey(autograd_key);
  if (!decomposes) return;
  autograd.impl(full_name(plan).c_str(), torch::CppFunction::makeFromBoxedFunctor(
                                             std::make_unique<Composite>(plan, autograd_key, backend_key)));
}

}  // namespace trapline::guard
