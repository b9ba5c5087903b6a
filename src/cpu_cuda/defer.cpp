#include "cpu_cuda/defer.hpp"

#include <ATen/NativeFunctions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/ops/empty_strided.h>

#include <utility>

#include "cpu_cuda/context.hpp"
#include "cpu_cuda/device.hpp"
#include "cpu_cuda/memory.hpp"
#include "cpu_cuda/streams.hpp"

namespace trapline::cpu_cuda {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using torch::jit::Stack;

// The CPU gives some of their results in other sizes than PyTorch's formulas for the meta device.
bool has_its_own_form(const Plan& plan) {
  return plan.name == "aten::_embedding_bag" || plan.name == "aten::_embedding_bag_forward_only";
}

template <class Change>
c10::IValue map_tensors(const c10::IValue& value, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (!value.isList()) return value;
  auto list = value.toList().copy();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const c10::IValue element = list.get(i);
    if (element.isTensor()) list.set(i, change(element.toTensor()));
  }
  return list;
}

template <class Change>
Stack map_stack(const Stack& stack, const Change& change) {
  Stack out;
  out.reserve(stack.size());
  for (const c10::IValue& value : stack) out.push_back(map_tensors(value, change));
  return out;
}

template <class Visit>
void each_tensor(const Stack& stack, const Visit& visit) {
  map_stack(stack, [&](const at::Tensor& tensor) {
    if (tensor.defined()) visit(tensor);
    return tensor;
  });
}

// Numbers in host memory stay as they are: PyTorch's own formulas for the meta device want them so.
at::Tensor meta_of(const at::Tensor& tensor) {
  if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().device(c10::kMeta).pinned_memory(false));
}

// Devices and generators of the device in the arguments as those of the host.
void options_to_host(const Plan& plan, Stack& arguments) {
  for (const Argument& argument : plan.looked_at) {
    c10::IValue& value = arguments[argument.at];
    if (argument.kind == Kind::kDevice && value.isDevice()) value = c10::Device(c10::kCPU);
    if (argument.kind == Kind::kGenerator && value.isGenerator() && value.toGenerator().defined())
      value = host_generator(value.toGenerator());
  }
}

// The results on `device`, without values; an argument that is written is itself. Nothing where it would have
// to grow, where a result is a view of an argument, and where it is a value.
std::optional<Stack> results_of(const Plan& plan, const Stack& given, const Stack& form, c10::Device device) {
  Stack out;
  const auto make = [&](const at::Tensor& meta) {
    return meta.defined() ? at::empty_strided(meta.sizes(), meta.strides(), meta.options().device(device))
                          : meta;
  };
  for (std::size_t i = 0; i < plan.returns; ++i) {
    const c10::IValue& value = form[i];
    if (plan.returned[i] >= 0) {
      const c10::IValue& written = given[static_cast<std::size_t>(plan.returned[i])];
      if (value.isTensor() && written.isTensor() && value.toTensor().sizes() != written.toTensor().sizes())
        return std::nullopt;
      out.push_back(written);
    } else if (value.isTensor() || value.isTensorList()) {
      out.push_back(map_tensors(value, make));
    } else if (value.isInt()) {
      out.push_back(value);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

bool shares_storage(const Stack& some, const Stack& others) {
  bool found = false;
  each_tensor(some, [&](const at::Tensor& one) {
    each_tensor(others,
                [&](const at::Tensor& other) { found |= one.storage().is_alias_of(other.storage()); });
  });
  return found;
}

// Where the operation has written into its argument, `from` is that argument.
void copy_results(const Plan& plan, const Stack& from, const Stack& to) {
  const auto copy = [](const at::Tensor& target, const at::Tensor& source) {
    // Empty where the CPU has no use for it, as the statistics of a batch norm that does not train.
    if (target.defined() && source.defined() && source.numel() != 0)
      at::native::copy_(const_cast<at::Tensor&>(target), source, false);
  };
  for (std::size_t i = 0; i < plan.returns; ++i) {
    if (plan.returned[i] >= 0) continue;
    if (to[i].isTensor()) {
      copy(to[i].toTensor(), from[i].toTensor());
    } else if (to[i].isTensorList()) {
      const auto targets = to[i].toTensorVector(), sources = from[i].toTensorVector();
      for (std::size_t j = 0; j < targets.size(); ++j) copy(targets[j], sources[j]);
    }
  }
}

// On the stream's thread, where nobody looks at what the CPU's kernel calls in turn: the guard has seen the
// call when it was made. (Without BackendSelect, the key of the CPU has to be named for what makes tensors.)
struct OnStream {
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::impl::ExcludeDispatchKeyGuard unseen{DispatchKey::BackendSelect};
  const c10::impl::IncludeDispatchKeyGuard on_cpu{DispatchKey::CPU};
};

// The statistics of a norm of float16 or bfloat16 are float32 on CUDA and the meta device, whose form they
// have; the CPU's derivative wants them in the dtype of its weights.
void match_statistics(const Plan& plan, Stack& arguments) {
  struct Place {
    const char* name;
    std::size_t first, weight;  // two arguments; the next to look at where there is no weight
    bool else_of_input;
  };
  static constexpr Place kPlaces[] = {{"aten::native_layer_norm_backward", 3, 5, true},
                                      {"aten::native_batch_norm_backward", 5, 2, false},
                                      {"aten::batch_norm_backward", 5, 2, false}};
  for (const Place& place : kPlaces) {
    if (plan.name != place.name || !at::isReducedFloatingType(arguments[1].toTensor().scalar_type()))
      continue;
    const auto dtype_at = [&](std::size_t at) -> std::optional<at::ScalarType> {
      const c10::IValue& value = arguments[at];
      if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
      return value.toTensor().scalar_type();
    };
    auto wanted = dtype_at(place.weight);
    if (!wanted) wanted = dtype_at(place.else_of_input ? 1 : place.weight + 1);
    for (std::size_t i = place.first; wanted && i < place.first + 2; ++i) {
      if (dtype_at(i)) arguments[i] = arguments[i].toTensor().to(*wanted);
    }
  }
}

// `arguments` and `results` are views of the host on the memory of the device.
void run_on_stream(const c10::OperatorHandle& op, const Plan& plan, Stack arguments, const Stack& results) {
  if (plan.asserts != nullptr) {
    const std::string line = plan.asserts(arguments);
    if (!line.empty()) return lose_context(line);
  }
  try {
    const OnStream here;
    match_statistics(plan, arguments);
    op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), &arguments);
    copy_results(plan, arguments, results);
  } catch (const c10::Error& error) {
    lose_context("trapline: --cpu: " + plan.name +
                 " failed after its call had returned: " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    lose_context("trapline: --cpu: " + plan.name + " failed after its call had returned: " + error.what());
  }
}

// As the program would call it: through the guard, and by the kernel that works at once.
void run_again(const c10::OperatorHandle& op, const Plan& plan, Stack arguments, const Stack& results) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  op.callBoxed(&arguments);
  copy_results(plan, map_stack(arguments, host_view), map_stack(results, host_view));
}

[[noreturn]] void refuse_capture(const Plan& plan, const char* why) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "trapline: --cpu: ", plan.name,
                              " cannot be captured in a CUDA graph: ", why);
}

}  // namespace

std::optional<Stack> form_of(const c10::OperatorHandle& op, const Plan& plan, const Stack& arguments) {
  Stack form = map_stack(arguments, meta_of);
  for (const Argument& argument : plan.looked_at) {
    c10::IValue& value = form[argument.at];
    if (argument.kind == Kind::kDevice && value.isDevice()) value = c10::Device(c10::kMeta);
    if (argument.kind == Kind::kGenerator) value = c10::IValue();
  }
  const Stack metas = form;
  try {
    const c10::impl::ExcludeDispatchKeyGuard no_python(c10::python_ks);
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(DispatchKeySet(DispatchKey::Meta), &form);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  Stack made;
  for (std::size_t i = 0; i < plan.returns; ++i) {
    if (plan.returned[i] < 0) made.push_back(form[i]);
  }
  if (shares_storage(made, metas)) return std::nullopt;
  return form;
}

bool defer(const c10::OperatorHandle& op, const Plan& plan, c10::Device device, Stack& stack) {
  const bool capturing = is_capturing();
  if (capturing && plan.is_collective)
    refuse_capture(plan, "capture what is between the collective operations");
  // Random numbers come in the order of the program.
  if (!capturing && (plan.is_collective || plan.draws || has_its_own_form(plan))) {
    wait_for_stream();
    return false;
  }
  const Stack given(stack.end() - plan.arguments, stack.end());
  std::optional<Stack> results;
  if (has_its_own_form(plan)) refuse_capture(plan, "its results have other sizes on the CPU");
  if (const auto form = form_of(op, plan, given)) results = results_of(plan, given, *form, device);
  if (!results) {
    wait_for_stream();  // throws while the stream captures, as CUDA's does
    return false;
  }
  if (!is_late()) {
    enqueue([op, &plan, given, results = *results] { run_again(op, plan, given, results); });
  } else {
    // What the host holds may change as soon as the call has returned.
    Stack host = map_stack(given, [](const at::Tensor& tensor) {
      return tensor.defined() && tensor.is_cpu() ? tensor.clone() : late_view(tensor);
    });
    options_to_host(plan, host);
    Stack out = map_stack(*results, late_view);
    Stack kept;
    if (capturing && graphs_own_memory()) {
      kept = given;
      kept.insert(kept.end(), results->begin(), results->end());
    }
    enqueue([op, &plan, host = std::move(host), out = std::move(out), kept = std::move(kept)] {
      run_on_stream(op, plan, host, out);
    });
  }
  torch::jit::drop(stack, plan.arguments);
  stack.insert(stack.end(), results->begin(), results->end());
  return true;
}

}  // namespace trapline::cpu_cuda
