#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/ops/_local_scalar_dense_ops.h>

#include <algorithm>
#include <cstring>

#include "guard/hooks.hpp"
#include "guard/hooks_device.hpp"

// Operations that bring values of the device to the host. What was computed from healed values must not pass
// here unseen: when such an operation is done, the checks before it have run, too.
namespace trapline::guard {
namespace {

constexpr const char* kReads[] = {
    "_local_scalar_dense",  // item(), bool(), float(), int(), tolist() of one element
    "nonzero",
    "masked_select",
    "_unique",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "unique_dim_consecutive",
    "equal",
    "bincount",
    "repeat_interleave",
    "_linalg_check_errors",
};

// The tensors that the operation is given, where a fault may be behind one of them.
std::vector<at::Tensor> read_tensors(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  std::vector<at::Tensor> out;
  if (!any_told()) return out;
  for (std::size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
    if (stack[i].isTensor()) out.push_back(stack[i].toTensor());
  }
  return out;
}

class Read final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    keys = keys & kBelow;
    ThreadState& state = t_state;
    if (!enabled() || !outermost(state) || !reaches_device(keys)) return op.redispatchBoxed(keys, stack);
    const std::vector<at::Tensor> read = read_tensors(op, *stack);
    on_device(state, [&] { op.redispatchBoxed(keys, stack); });
    raise_late(state, FaultScope::kAny);
    for (const at::Tensor& tensor : read) raise_again(state, tensor);
  }
};

// item() is everywhere: no boxing.
at::Scalar read_scalar(c10::DispatchKeySet keys, const at::Tensor& self) {
  using Op = at::_ops::_local_scalar_dense;
  keys = keys & kBelow;
  ThreadState& state = t_state;
  if (!reaches_device(keys) || !enabled() || !outermost(state)) return Op::redispatch(keys, self);
  const at::Scalar value = on_device(state, [&] { return Op::redispatch(keys, self); });
  raise_late(state, FaultScope::kAny);
  raise_again(state, self);
  return value;
}

// torch's own word: the result, or its size, is only known when the device has computed it.
bool depends_on_values(const c10::OperatorHandle& op) {
  // What decomposes does so into operations that are hooked.
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) return false;
  return op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape);
}

}  // namespace

bool is_read(const std::string& op) {
  return std::any_of(std::begin(kReads), std::end(kReads),
                     [&](const char* name) { return op == std::string("aten::") + name; });
}

bool has_mask(const Plan& plan, const torch::jit::Stack& stack) {
  for (std::size_t i = stack.size() - plan.handle.schema().arguments().size(); i < stack.size(); ++i) {
    if (!stack[i].isList()) continue;
    for (const c10::IValue& one : stack[i].toListRef()) {
      if (!one.isTensor() || !one.toTensor().defined()) continue;
      const c10::ScalarType dtype = one.toTensor().scalar_type();
      if (dtype == at::kBool || dtype == at::kByte) return true;
    }
  }
  return false;
}

void hook_reads(torch::Library& library) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.compare(0, std::strlen("aten::"), "aten::") != 0) continue;
    const auto handle = dispatcher.findSchema(name);
    if (!handle || !(is_read(name.name) || depends_on_values(*handle))) continue;
    // A guarded operation has its hook already, and another extension's kernel is not overridden.
    if (handle->hasKernelForDispatchKey(c10::DispatchKey::BackendSelect)) continue;
    const std::string impl_name =
        name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    if (impl_name == "aten::_local_scalar_dense") {
      library.impl(impl_name.c_str(), torch::CppFunction(TORCH_FN(read_scalar)));
    } else {
      library.impl(impl_name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Read>()));
    }
  }
}

}  // namespace trapline::guard
