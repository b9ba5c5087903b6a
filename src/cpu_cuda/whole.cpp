// Operations whose composition, or whose derivative, asks whether it is on CUDA and then computes otherwise:
// they are run on the CPU as a whole, with the graph that autograd makes there, so that their numbers are the
// CPU's.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/FuncTorchTLS.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/List.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <utility>

#include "cpu_cuda/context.hpp"
#include "cpu_cuda/memory.hpp"
#include "cpu_cuda/plan.hpp"
#include "cpu_cuda/streams.hpp"

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

// One run on the CPU. A graph that captures the call does it again at each replay, with the same object, so
// that its backward call finds the graph of autograd that the forward call has made last.
struct Run final : torch::CustomClassHolder {
  Run(const c10::OperatorHandle& operation, Stack arguments) : op(operation), given(std::move(arguments)) {}

  void forward() {
    const at::AutoGradMode with_graph(true);
    Stack stack = given;
    leaves.clear();
    for (c10::IValue& value : stack) {
      change_tensors(value, [&](const at::Tensor& tensor) {
        leaves.push_back(leaf_of(tensor, tensor.requires_grad()));
        return leaves.back();
      });
    }
    op.callBoxed(&stack);
    made = std::move(stack);
    results = tensors_of(made);
  }

  // One for each leaf.
  variable_list backward(const variable_list& gradients) const {
    variable_list wanted, roots, given_gradients, out(leaves.size());
    for (const at::Tensor& leaf : leaves) {
      if (leaf.requires_grad()) wanted.push_back(leaf);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].requires_grad() || !gradients[i].defined()) continue;
      roots.push_back(results[i]);
      given_gradients.push_back(leaf_of(gradients[i], false));
    }
    if (roots.empty()) return out;
    const variable_list found = torch::autograd::grad(roots, wanted, given_gradients, true, false, true);
    std::size_t next = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].requires_grad()) out[i] = found[next++];
    }
    return out;
  }

  const c10::OperatorHandle op;
  const Stack given;  // on the device
  Stack made;
  variable_list leaves, results;
};

variable_list adopted(const variable_list& tensors, c10::DeviceIndex device) {
  variable_list out;
  out.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors)
    out.push_back(tensor.defined() ? adopt(tensor.detach(), device) : at::Tensor());
  return out;
}

void copy_values(const variable_list& from, const variable_list& to) {
  const at::AutoDispatchBelowADInplaceOrView below;
  for (std::size_t i = 0; i < to.size(); ++i) {
    at::Tensor target = host_view(to[i]);
    if (target.defined() && from[i].defined()) at::native::copy_(target, from[i].detach(), false);
  }
}

// The call is made while a stream captures, too, which tells what comes back; it must leave no trace.
class KeepRandomState {
 public:
  explicit KeepRandomState(bool keep) : generator_(at::detail::getDefaultCPUGenerator()) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    if (keep) state_ = generator_.get_state();
  }
  ~KeepRandomState() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    if (state_.defined()) generator_.set_state(state_);
  }
  KeepRandomState(const KeepRandomState&) = delete;
  KeepRandomState& operator=(const KeepRandomState&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

struct OnCpu : torch::autograd::Function<OnCpu> {
  static variable_list forward(AutogradContext* context, const c10::OperatorHandle* op, Stack* stack,
                               at::TensorList inputs) {
    c10::DeviceIndex device = 0;
    for (const at::Tensor& input : inputs) {
      if (input.is_cuda()) device = input.device().index();
    }
    const bool capturing = is_capturing();
    const auto run = c10::make_intrusive<Run>(*op, *stack);
    {
      const KeepRandomState keep(capturing);
      run->forward();
    }
    *stack = run->made;
    context->save_for_backward(inputs.vec());  // so that a write to one of them before backward is noticed
    context->saved_data["run"] = c10::IValue::make_capsule(run);
    variable_list out = adopted(run->results, device);
    if (capturing) {
      enqueue([run, out] {
        run->forward();
        copy_values(run->results, out);
      });
    }
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    context->get_saved_variables();
    const bool capturing = is_capturing();
    if (is_late() && !capturing) wait_for_stream();
    const auto run = c10::static_intrusive_pointer_cast<Run>(context->saved_data["run"].toCapsule());
    const c10::DeviceIndex device = c10::impl::VirtualGuardImpl(kDevice).getDevice().index();
    const variable_list found = adopted(run->backward(gradients), device);
    if (capturing) enqueue([run, gradients, found] { copy_values(run->backward(gradients), found); });
    variable_list out(2);  // the operation and its stack come first
    out.insert(out.end(), found.begin(), found.end());
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
    if (is_late() && !is_capturing()) wait_for_stream();
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
