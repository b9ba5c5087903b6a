// Operations whose composition, or whose derivative, asks whether it is on CUDA and then computes otherwise:
// they are run on the CPU as a whole, with the graph that autograd makes there, so that their numbers are the
// CPU's.
#include <ATen/FuncTorchTLS.h>
#include <ATen/core/List.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <utility>

#include "cpu_cuda/context.hpp"
#include "cpu_cuda/memory.hpp"
#include "cpu_cuda/plan.hpp"

namespace trapline::cpu_cuda {
namespace {

using c10::DispatchKey;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

const char* const kWhole[] = {"lstm.input",
                              "lstm.data",
                              "gru.input",
                              "gru.data",
                              "rnn_tanh.input",
                              "rnn_tanh.data",
                              "rnn_relu.input",
                              "rnn_relu.data",
                              "lstm_cell",
                              "gru_cell",
                              "rnn_tanh_cell",
                              "rnn_relu_cell",
                              "dropout",
                              "feature_dropout",
                              "alpha_dropout",
                              "feature_alpha_dropout",
                              "scaled_dot_product_attention",
                              "renorm"};

// Replaces each tensor of the arguments.
template <class Change>
void change_tensors(c10::IValue& value, const Change& change) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) value = change(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> out;
    for (const at::Tensor& tensor : value.toTensorVector())
      out.push_back(tensor.defined() ? change(tensor) : tensor);
    value = std::move(out);
  }
}

variable_list tensors_of(Stack& arguments) {
  variable_list out;
  for (c10::IValue& value : arguments) {
    change_tensors(value, [&](const at::Tensor& tensor) {
      out.push_back(tensor);
      return tensor;
    });
  }
  return out;
}

at::Tensor leaf_of(const at::Tensor& tensor, bool wanted) {
  const at::Tensor leaf = host_tensor(tensor);
  return wanted ? leaf.requires_grad_() : leaf;
}

struct OnCpu : torch::autograd::Function<OnCpu> {
  static variable_list forward(AutogradContext* context, const c10::OperatorHandle* op, Stack* stack,
                               at::TensorList inputs) {
    const at::AutoGradMode with_graph(true);
    variable_list leaves;
    c10::DeviceIndex device = 0;
    for (const at::Tensor& input : inputs) {
      if (input.is_cuda()) device = input.device().index();
    }
    for (c10::IValue& value : *stack) {
      change_tensors(value, [&](const at::Tensor& tensor) {
        leaves.push_back(leaf_of(tensor, tensor.requires_grad()));
        return leaves.back();
      });
    }
    op->callBoxed(stack);
    variable_list results = tensors_of(*stack);
    context->save_for_backward(inputs.vec());  // so that a write to one of them before backward is noticed
    context->saved_data["leaves"] = leaves;
    context->saved_data["results"] = results;
    variable_list out;
    out.reserve(results.size());
    for (const at::Tensor& result : results) out.push_back(adopt(result.detach(), device));
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    context->get_saved_variables();
    const variable_list leaves = context->saved_data["leaves"].toTensorVector();
    const variable_list results = context->saved_data["results"].toTensorVector();
    const c10::DeviceIndex device = c10::impl::VirtualGuardImpl(kDevice).getDevice().index();
    variable_list wanted, roots, given;
    for (const at::Tensor& leaf : leaves) {
      if (leaf.requires_grad()) wanted.push_back(leaf);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].requires_grad() || !gradients[i].defined()) continue;
      roots.push_back(results[i]);
      given.push_back(leaf_of(gradients[i], false));
    }
    variable_list out(leaves.size() + 2);  // the operation and its stack come first
    if (roots.empty()) return out;
    const variable_list found = torch::autograd::grad(roots, wanted, given, true, false, true);
    std::size_t next = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!leaves[i].requires_grad()) continue;
      const at::Tensor& gradient = found[next++];
      if (gradient.defined()) out[i + 2] = adopt(gradient, device);
    }
    return out;
  }
};

// Its state stays when a transform has ended; only this tells whether one is going on.
bool functorch_is_active() {
  const auto& state = at::functorch::functorchTLSAccessor();
  if (!state) return false;
  try {
    state->checkSupportsCppAutogradFunction();
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

class Whole final : public c10::OperatorKernel {
  static bool is_mixed(const c10::OperatorHandle& op, Stack& arguments) {
    std::optional<c10::Device> common;
    bool mixed = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (op.schema().arguments()[i].name() == "batch_sizes") continue;  // is the CPU's on CUDA, too
      change_tensors(arguments[i], [&](const at::Tensor& tensor) {
        if (!common) common = tensor.device();
        mixed |= *common != tensor.device();
        return tensor;
      });
    }
    return mixed;
  }

 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    check_context();
    const std::size_t count = op.schema().arguments().size();
    Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
    const variable_list inputs = tensors_of(arguments);
    // Its own composition says what is wrong, in its own words. functorch has its own derivatives.
    if (is_mixed(op, arguments) || functorch_is_active())
      return op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::VE), stack);
    torch::jit::drop(*stack, count);
    const variable_list results = OnCpu::apply(&op, &arguments, at::TensorList(inputs));
    std::size_t next = 0;
    for (c10::IValue& value : arguments) {
      change_tensors(value, [&](const at::Tensor&) { return results[next++]; });
    }
    stack->insert(stack->end(), arguments.begin(), arguments.end());
  }
};

struct RegisterWhole {
  RegisterWhole() {
    static torch::Library autograd(torch::Library::IMPL, "aten", DispatchKey::AutogradCUDA, __FILE__,
                                   __LINE__);
    static torch::Library dense(torch::Library::IMPL, "aten", DispatchKey::CUDA, __FILE__, __LINE__);
    for (const char* name : kWhole) {
      const std::string full = std::string("aten::") + name;
      const auto dot = full.find('.');
      const auto op = c10::Dispatcher::singleton().findSchema(
          {full.substr(0, dot), dot == std::string::npos ? "" : full.substr(dot + 1)});
      if (!op) continue;
      autograd.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Whole>()));
      // In inference mode nobody passes by autograd's key. What has a kernel of the CPU gets ours.
      if (!op->hasKernelForDispatchKey(DispatchKey::CPU))
        dense.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Whole>()));
    }
  }
} g_register_whole;

}  // namespace
}  // namespace trapline::cpu_cuda
