#include <ATen/ops/copy_ops.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "guard/answer.hpp"
#include "guard/check.hpp"
#include "guard/hooks.hpp"
#include "guard/hooks_device.hpp"

// Kernels of the operations' own signatures save the boxing of arguments, about 100 ns a call. One template
// serves all versions of torch: the signature comes from torch's own declaration (int64_t became SymInt
// in 2.0).
namespace trapline::guard {
namespace {

// How each type of argument is seen by the checks; `keep` owns what has to live as long as the view.
struct Kept {
  c10::IValue list;
};

template <class T>
void view(Argument&, const T&, Kept&) {}  // scalars, flags, optional weights: no row reads them

void view(Argument& out, const at::Tensor& tensor, Kept&) {
  out.kind = TRAPLINE_ARG_TENSOR;
  out.tensor = &tensor;
}

void view(Argument& out, const std::int64_t& value, Kept&) {
  out.kind = TRAPLINE_ARG_INT;
  out.integer = value;
}

void view(Argument& out, const c10::SymInt& value, Kept&) {
  if (value.is_symbolic()) return;
  out.kind = TRAPLINE_ARG_INT;
  out.integer = value.expect_int();
}

template <class T>
void view(Argument& out, const c10::List<T>& list, Kept& kept) {
  kept.list = c10::IValue(list);
  out.kind = TRAPLINE_ARG_LIST;
  out.list = kept.list.toListRef();
}

// An operation's results, from the stack that a boxed call left.
template <class Result>
struct Unboxed {
  static Result of(torch::jit::Stack& stack) { return std::move(stack.front()).to<Result>(); }
};

template <class... Results>
struct Unboxed<std::tuple<Results...>> {
  static std::tuple<Results...> of(torch::jit::Stack& stack) {
    std::size_t at = 0;
    return std::tuple<Results...>{std::move(stack[at++]).template to<Results>()...};
  }
};

template <class Op, class Signature = typename Op::schema>
struct Hot;

template <class Op, class Result, class... Args>
struct Hot<Op, Result(Args...)> {
  static inline const Plan* plan = nullptr;
  // Op::redispatch() is a call into another library, and again one into the dispatcher.
  using Handle = c10::TypedOperatorHandle<Result(Args...)>;
  static inline std::optional<Handle> handle;

  static Result redispatch(c10::DispatchKeySet keys, Args... args) {
    return handle->redispatch(keys, std::forward<Args>(args)...);
  }

  static Result call(c10::DispatchKeySet keys, Args... args) {
    keys = keys & kBelow;
    ThreadState& state = t_state;
    if (!enabled() || !outermost(state) || !reaches_dense_cpu(keys)) {
      return elsewhere(state, keys, std::forward<Args>(args)...);
    }
    Violation violation;
    if (violates(state, violation, args...)) return answer(state, keys, violation, args...);
    const DepthScope depth(state, violation.applied);
    return redispatch(keys, std::forward<Args>(args)...);
  }

 private:
  static bool violates(ThreadState& state, Violation& violation,
                       const std::remove_reference_t<Args>&... args) {
    Argument arguments[sizeof...(Args)];
    Kept kept;
    std::size_t at = 0;
    (view(arguments[at++], args, kept), ...);
    return check_call(state, *plan, arguments, violation);
  }

  // On the device the launch of the check costs more than boxing.
  [[gnu::noinline]] static Result elsewhere(ThreadState& state, c10::DispatchKeySet keys, Args... args) {
    if (!enabled() || !outermost(state) || !reaches_device(keys)) {
      return redispatch(keys, std::forward<Args>(args)...);
    }
    torch::jit::Stack stack;
    stack.reserve(sizeof...(Args));  // push() grows it one by one
    torch::jit::push(stack, std::forward<Args>(args)...);
    call_on_device(state, *plan, stack, [&] { plan->handle.redispatchBoxed(keys, &stack); });
    return Unboxed<Result>::of(stack);
  }

  // Out of line: only what follows a violation needs all arguments boxed.
  [[gnu::noinline, gnu::cold]] static Result answer(ThreadState& state, c10::DispatchKeySet keys,
                                                    const Violation& violation,
                                                    const std::remove_reference_t<Args>&... args) {
    torch::jit::Stack stack;
    torch::jit::push(stack, args...);
    answer_call(state, *plan, violation, stack,
                [&](torch::jit::Stack& arguments) { plan->handle.redispatchBoxed(keys, &arguments); });
    const DepthScope depth(state);
    plan->handle.redispatchBoxed(keys, &stack);
    return Unboxed<Result>::of(stack);
  }
};

// copy_ is everywhere, and only a copy of floating point numbers into integers can lose a NaN: anything else
// has to be out of here in a few nanoseconds.
struct Copy {
  static inline const Plan* plan = nullptr;

  static at::Tensor& call(c10::DispatchKeySet keys, at::Tensor& self, const at::Tensor& src,
                          bool non_blocking) {
    keys = keys & kBelow;
    if (enabled() && c10::isIntegralType(self.scalar_type(), false) &&
        c10::isFloatingType(src.scalar_type()) && outermost(t_state) && reaches_dense_cpu(keys)) {
      check(self, src);
    }
    if (has_device() && reaches_device(keys)) return on_the_device(keys, self, src, non_blocking);
    return at::_ops::copy_::redispatch(keys, self, src, non_blocking);
  }

 private:
  [[gnu::noinline]] static at::Tensor& on_the_device(c10::DispatchKeySet keys, at::Tensor& self,
                                                     const at::Tensor& src, bool non_blocking) {
    ThreadState& state = t_state;
    if (!enabled() || !outermost(state)) return at::_ops::copy_::redispatch(keys, self, src, non_blocking);
    if (c10::isIntegralType(self.scalar_type(), false) && c10::isFloatingType(src.scalar_type())) {
      torch::jit::Stack stack{self, src, non_blocking};
      check_on_device(state, *plan, stack);  // reports only: the arguments stay what they are
    }
    on_device(state, [&] { at::_ops::copy_::redispatch(keys, self, src, non_blocking); });
    // Even a copy that does not block may be complete when it returns: to memory that is not pinned.
    if (self.device().is_cpu() && !src.device().is_cpu()) {
      raise_late(state, FaultScope::kAny);
      raise_again(state, src);
    }
    return self;
  }

  [[gnu::noinline]] static void check(const at::Tensor& self, const at::Tensor& src) {
    Argument arguments[3];
    Kept kept;
    view(arguments[0], self, kept);
    view(arguments[1], src, kept);
    Violation violation;
    // A row that does not remember would be an error here, and the boxed arguments are cheap then.
    if (!check_call(t_state, *plan, arguments, violation)) return;
    torch::jit::Stack stack{self, src, false};
    answer_violation(t_state, *plan, violation, "", stack.data());
  }
};

template <class Kernel>
bool hook_if(torch::Library& library, const Plan& plan, const char* op, const char* overload) {
  if (plan.op != op || plan.overload != overload) return false;
  Kernel::plan = &plan;
  library.impl(full_name(plan).c_str(), torch::CppFunction(TORCH_FN((Kernel::call))));
  return true;
}

template <class Op>
bool hook_if(torch::Library& library, const Plan& plan) {
  // Before the hook, which other threads may run into at once.
  if (plan.op == Op::name && plan.overload == Op::overload_name && !Hot<Op>::handle) {
    Hot<Op>::handle = plan.handle.template typed<typename Op::schema>();
  }
  return hook_if<Hot<Op>>(library, plan, Op::name, Op::overload_name);
}

}  // namespace

bool hook_hot(torch::Library& library, const Plan& plan) {
  using namespace at::_ops;  // NOLINT(google-build-using-namespace): six names of one generated namespace
  return hook_if<embedding>(library, plan) || hook_if<nll_loss_forward>(library, plan) ||
         hook_if<nll_loss_backward>(library, plan) || hook_if<index_Tensor>(library, plan) ||
         hook_if<gather>(library, plan) || hook_if<index_select>(library, plan) ||
         hook_if<Copy>(library, plan, copy_::name, copy_::overload_name);
}

}  // namespace trapline::guard
