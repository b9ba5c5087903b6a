// One kernel for all operations that the CPU has: it runs the CPU's on the same memory.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/core/op_registration/adaption.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <optional>
#include <utility>

#include "cpu_cuda/context.hpp"
#include "cpu_cuda/defer.hpp"
#include "cpu_cuda/device.hpp"
#include "cpu_cuda/memory.hpp"
#include "cpu_cuda/plan.hpp"
#include "cpu_cuda/streams.hpp"

namespace trapline::cpu_cuda {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using torch::jit::Stack;

template <class Visit>
void each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      if (element.isList()) {
        each_tensor(element, visit);
      } else if (element.isTensor() && element.toTensor().defined()) {
        visit(element.toTensor());
      }
    }
  }
}

struct Devices {
  std::optional<c10::Device> common;  // the first of the tensors that is no CPU's
  bool mixed = false;
  bool host = false;  // there are tensors, and all are the CPU's: a generator of the device is what came here
};

Devices look(const Plan& plan, const c10::IValue* arguments) {
  Devices found;
  bool host = false, any_host = false;
  for (const Argument& argument : plan.looked_at) {
    if (argument.kind != Kind::kTensor && argument.kind != Kind::kTensors) continue;
    each_tensor(arguments[argument.at], [&](const at::Tensor& tensor) {
      const c10::Device device = tensor.device();
      if (device.is_cpu()) {
        any_host = true;
        // Where the wrapper checks, numbers in host memory are no exception.
        if (plan.checks_devices || (tensor.dim() != 0 && !argument.optional_list)) host = true;
        if (argument.optional_list && !found.common) host = true;  // indices: the indexed one comes first
      } else if (!found.common) {
        found.common = device;
      } else if (*found.common != device) {
        found.mixed = true;
      }
    });
  }
  found.mixed |= host && found.common.has_value();
  found.host = any_host && !found.common;
  return found;
}

// As the wrappers do that PyTorch generates for CUDA: what is written comes first.
void check_as_wrapper(const c10::OperatorHandle& op, const Plan& plan, const c10::IValue* arguments) {
  std::optional<c10::Device> common;
  const auto& schema = op.schema();
  const auto check = [&](const Argument& argument) {
    each_tensor(arguments[argument.at], [&](const at::Tensor& tensor) {
      c10::impl::check_and_update_common_device(common, tensor, plan.method.c_str(),
                                                schema.arguments()[argument.at].name().c_str());
    });
  };
  for (const bool out : {true, false}) {
    for (const Argument& argument : plan.looked_at) {
      const bool tensors = argument.kind == Kind::kTensor || argument.kind == Kind::kTensors;
      if (tensors && schema.arguments()[argument.at].is_out() == out) check(argument);
    }
  }
}

// Kernels with words of their own.
void refuse_in_own_words(const Plan& plan, const c10::IValue* arguments) {
  const auto tensor_at = [&](std::size_t i) {
    return arguments[i].isTensor() ? arguments[i].toTensor() : at::Tensor();
  };
  if (plan.name.rfind("aten::masked_fill", 0) == 0) {
    TORCH_CHECK(false, "expected self and mask to be on the same device, but got mask on ",
                tensor_at(1).device(), " and self on ", tensor_at(0).device());
  }
  if (plan.name.find("slow_conv") == std::string::npos || plan.name.find("backward") != std::string::npos)
    return;
  const at::Tensor input = tensor_at(0), weight = tensor_at(1);
  TORCH_CHECK(input.device() == weight.device(), "Input type (", input.toString(), ") and weight type (",
              weight.toString(), ") should be the same");
  for (std::size_t i = 2; i < plan.arguments; ++i) {
    const at::Tensor bias = tensor_at(i);
    TORCH_CHECK(!bias.defined() || bias.device() == input.device(), "Input type (", input.toString(),
                ") and bias type (", bias.toString(), ") should be the same");
  }
}

// What TensorIterator says, which most kernels without a check of the wrapper's use.
[[noreturn]] void refuse_mixed(const Plan& plan, const c10::IValue* arguments, c10::Device common) {
  for (const Argument& argument : plan.looked_at) {
    if (argument.kind != Kind::kTensor && argument.kind != Kind::kTensors) continue;
    each_tensor(arguments[argument.at], [&](const at::Tensor& tensor) {
      if (tensor.device() == common || (tensor.is_cpu() && tensor.dim() == 0)) return;
      TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ",
                  common, " and ", tensor.device(), "!");
    });
  }
  TORCH_CHECK(false, plan.name, ": its tensors are on different devices");
}

// A call's arguments on their way to the CPU and its results on their way back.
class Call {
 public:
  Call(const Plan& plan, Stack& stack, std::optional<c10::Device> common)
      : plan_(plan), stack_(stack), base_(stack.size() - plan.arguments), common_(common) {
    if (plan.device_at < 0) return;
    const c10::IValue& value = stack_[base_ + static_cast<std::size_t>(plan.device_at)];
    if (value.isDevice()) result_device_ = value.toDevice();
  }

  void to_host() {
    for (const Argument& argument : plan_.looked_at) {
      c10::IValue& value = stack_[base_ + argument.at];
      switch (argument.kind) {
        case Kind::kTensor:
          if (value.isTensor()) tensor_to_host(value, argument.at);
          break;
        case Kind::kTensors:
          if (value.isList()) value = list_to_host(value, argument.at);
          break;
        case Kind::kDevice:
          if (value.isDevice()) value = c10::Device(c10::kCPU);
          break;
        case Kind::kGenerator:
          if (value.isGenerator() && value.toGenerator().defined()) {
            TORCH_CHECK(device().is_cuda(), "Expected a 'cpu' device type for generator but found 'cuda'");
            value = host_generator(value.toGenerator());
          }
          break;
        case Kind::kPinMemory:
          TORCH_CHECK(!value.isBool() || !value.toBool(), "Only dense CPU tensors can be pinned");
          break;
      }
    }
  }

  void to_device() {
    const std::size_t base = stack_.size() - plan_.returns;
    for (std::size_t i = 0; i < plan_.returns; ++i) {
      c10::IValue& value = stack_[base + i];
      if (plan_.returned[i] >= 0) {
        given_back(value, plan_.returned[i]);
      } else if (value.isTensor()) {
        value = new_result(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> out;
        for (const at::Tensor& tensor : value.toTensorVector()) out.push_back(new_result(tensor));
        value = std::move(out);
      } else if (value.isList()) {
        value = nested(value, [&](const at::Tensor& tensor) { return new_result(tensor); });
      }
    }
  }

  c10::Device device() const {
    if (result_device_) {
      if (!result_device_->is_cuda() || result_device_->has_index()) return *result_device_;
    } else if (common_) {
      return *common_;
    }
    return {kDevice, current_device()};
  }

 private:
  struct Pair {
    at::Tensor device, host;
    std::uint8_t at;
  };

  at::Tensor face(const at::Tensor& tensor) const {
    return plan_.is_collective ? host_tensor(tensor) : host_view(tensor);
  }

  void tensor_to_host(c10::IValue& value, std::uint8_t at) {
    const at::Tensor& given = value.toTensor();
    if (!given.defined() || !given.is_cuda()) return;
    at::Tensor host = face(given);
    pairs_.push_back({std::move(value).toTensor(), host, at});
    value = std::move(host);
  }

  c10::IValue list_to_host(const c10::IValue& value, std::uint8_t at) {
    const auto one = [&](const at::Tensor& given) {
      if (!given.defined() || !given.is_cuda()) return given;
      pairs_.push_back({given, face(given), at});
      return pairs_.back().host;
    };
    if (value.isTensorList()) {
      c10::List<at::Tensor> out;
      for (const c10::IValue& element : value.toListRef()) out.push_back(one(element.toTensor()));
      return out;
    }
    if (!value.isOptionalTensorList()) return nested(value, one);
    c10::List<std::optional<at::Tensor>> out;
    for (const c10::IValue& element : value.toListRef()) {
      std::optional<at::Tensor> tensor;
      if (element.isTensor()) tensor = one(element.toTensor());
      out.push_back(std::move(tensor));
    }
    return out;
  }

  template <class Change>
  static c10::IValue nested(const c10::IValue& value, const Change& change) {
    if (value.toListRef().empty() || !value.toListRef()[0].isTensorList()) return value;
    c10::List<c10::List<at::Tensor>> out;
    for (const c10::IValue& element : value.toListRef()) {
      c10::List<at::Tensor> inner;
      for (const at::Tensor& tensor : element.toTensorVector()) inner.push_back(change(tensor));
      out.push_back(std::move(inner));
    }
    return out;
  }

  // A result that is an argument: the tensor that the program gave, with what happened to its face.
  void given_back(c10::IValue& value, std::int8_t at) {
    for (const Pair& pair : pairs_) {
      if (pair.at != at) continue;
      if (value.isTensor()) {
        follow(pair.device, value.toTensor());
        value = pair.device;
        return;
      }
    }
    if (!value.isTensorList()) return;
    c10::List<at::Tensor> out;
    for (const Pair& pair : pairs_) {
      if (pair.at == at) out.push_back(pair.device);
    }
    value = std::move(out);
  }

  at::Tensor new_result(const at::Tensor& host) const {
    if (!host.defined() || !host.is_cpu()) return host;
    const c10::Device goal = device();
    if (!goal.is_cuda()) return host;
    TORCH_CHECK_NOT_IMPLEMENTED(host.layout() == c10::kStrided, "trapline: --cpu: ", plan_.name,
                                " makes a tensor of layout ", host.layout(),
                                ": only dense tensors can be on this device: keep it on the CPU");
    const c10::StorageImpl* storage = host.storage().unsafeGetStorageImpl();
    for (const Pair& pair : pairs_) {
      if (pair.host.storage().unsafeGetStorageImpl() == storage) return adopt_on(pair.device.storage(), host);
    }
    return adopt(host, goal.index());
  }

  const Plan& plan_;
  Stack& stack_;
  const std::size_t base_;
  const std::optional<c10::Device> common_;
  std::optional<c10::Device> result_device_;
  c10::SmallVector<Pair, 4> pairs_;
};

// Results without values in place of the arguments: what a call returns whose kernel fails later.
bool make_results(const c10::OperatorHandle& op, const Plan& plan, const Stack& host, Stack& stack) {
  std::optional<Stack> form = form_of(op, plan, host);
  if (!form) return false;  // it depends on the values: CUDA waits there, and so does this
  stack = std::move(*form);
  for (std::size_t i = 0; i < plan.returns; ++i) {
    c10::IValue& value = stack[stack.size() - plan.returns + i];
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor& meta = value.toTensor();
    value = plan.returned[i] >= 0 ? host[static_cast<std::size_t>(plan.returned[i])]
                                  : c10::IValue(at::zeros(meta.sizes(), meta.options().device(c10::kCPU)));
  }
  return true;
}

class OnHost final : public c10::OperatorKernel {
 public:
  explicit OnHost(Plan plan) : plan_(std::move(plan)) {}

  void operator()(const c10::OperatorHandle& op, DispatchKeySet, Stack* stack) {
    check_context();
    const c10::IValue* arguments = stack->data() + (stack->size() - plan_.arguments);
    const Devices devices = look(plan_, arguments);
    if (C10_UNLIKELY(devices.mixed)) {
      refuse_in_own_words(plan_, arguments);
      if (plan_.checks_devices) check_as_wrapper(op, plan_, arguments);
      if (plan_.is_composite) return op.redispatchBoxed(DispatchKeySet(kNobody), stack);
      refuse_mixed(plan_, arguments, *devices.common);
    }
    if (plan_.adapt != nullptr && plan_.adapt(op, *stack)) return;
    Call call(plan_, *stack, devices.host ? std::optional(c10::Device(c10::kCPU)) : devices.common);
    // The tensors' device, not the thread's, says on whose stream the work is put.
    const c10::OptionalDeviceGuard guard(call.device().is_cuda() ? std::optional(call.device())
                                                                 : std::nullopt);
    if (C10_UNLIKELY(is_deferred()) && call.device().is_cuda() && defer(op, plan_, call.device(), *stack)) {
      return;
    }
    call.to_host();
    const at::AutoDispatchBelowADInplaceOrView below;
    if (plan_.asserts == nullptr) {
      op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
    } else {
      run_asserting(op, *stack);
    }
    call.to_device();
  }

 private:
  void run_asserting(const c10::OperatorHandle& op, Stack& stack) const {
    Stack kept(stack.end() - plan_.arguments, stack.end());
    try {
      op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), &stack);
    } catch (const std::exception&) {
      const std::string line = plan_.asserts(kept);
      if (line.empty()) throw;
      lose_context(line);
      if (launches_block() || !make_results(op, plan_, kept, stack)) check_context();
    }
  }

  const Plan plan_;
};

class Refuse final : public c10::OperatorKernel {
 public:
  explicit Refuse(std::string name) : name_(std::move(name)) {}
  void operator()(const c10::OperatorHandle&, DispatchKeySet, Stack*) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "trapline: --cpu: ", name_,
                                " cannot be run: CUDA has it and the CPU has not: leave it out here, or run "
                                "this part on a GPU");
  }

 private:
  const std::string name_;
};

}  // namespace

void register_host(torch::Library& library, const c10::OperatorHandle& op) {
  Plan plan = plan_of(op);
  const std::string name = plan.name;
  library.impl(name.c_str(),
               torch::CppFunction::makeFromBoxedFunctor(std::make_unique<OnHost>(std::move(plan))));
}

void register_refusal(torch::Library& library, const c10::OperatorHandle& op) {
  const std::string name = plan_of(op).name;
  library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Refuse>(name)));
}

}  // namespace trapline::cpu_cuda
