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

#include <algorithm>
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
                              "group_norm",
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

// A piece of the CPU's graph of autograd, behind tensors of the device: `results` were made of `leaves`. A
// graph that captures the call makes both anew at each replay.
struct Piece final : torch::CustomClassHolder {
  variable_list leaves;  // one for each tensor of the device that the piece was given
  variable_list results;
};
using PiecePtr = c10::intrusive_ptr<Piece>;

// The operation on the CPU: `given` with its tensors of the device becomes the results of the host.
void run_piece(const c10::OperatorHandle& op, Stack& given, Piece& piece) {
  const at::AutoGradMode with_graph(true);
  piece.leaves.clear();
  for (c10::IValue& value : given) {
    change_tensors(value, [&](const at::Tensor& tensor) {
      piece.leaves.push_back(leaf_of(tensor, tensor.requires_grad()));
      return piece.leaves.back();
    });
  }
  op.callBoxed(&given);
  piece.results = tensors_of(given);
}

// The gradients of the leaves, on the host; undefined where there is none. `gradients` are leaves, too.
variable_list differentiate(const Piece& piece, const variable_list& gradients, bool with_graph) {
  variable_list wanted, roots, given, out(piece.leaves.size());
  for (const at::Tensor& leaf : piece.leaves) {
    if (leaf.requires_grad()) wanted.push_back(leaf);
  }
  for (std::size_t i = 0; i < piece.results.size(); ++i) {
    if (!piece.results[i].requires_grad() || !gradients[i].defined()) continue;
    roots.push_back(piece.results[i]);
    given.push_back(gradients[i]);
  }
  if (roots.empty()) return out;
  const variable_list found = torch::autograd::grad(roots, wanted, given, true, with_graph, true);
  std::size_t next = 0;
  for (std::size_t i = 0; i < piece.leaves.size(); ++i) {
    if (piece.leaves[i].requires_grad()) out[i] = found[next++];
  }
  return out;
}

variable_list leaves_of(const variable_list& tensors, bool wanted) {
  variable_list out;
  out.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) out.push_back(tensor.defined() ? leaf_of(tensor, wanted) : tensor);
  return out;
}

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
  static variable_list forward(AutogradContext* context, const PiecePtr& piece, c10::DeviceIndex device,
                               at::TensorList inputs) {
    context->save_for_backward(inputs.vec());  // so that a write to one of them before backward is noticed
    context->saved_data["piece"] = c10::IValue::make_capsule(piece);
    return adopted(piece->results, device);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list inputs = context->get_saved_variables();
    const auto piece = c10::static_intrusive_pointer_cast<Piece>(context->saved_data["piece"].toCapsule());
    const c10::DeviceIndex device = c10::impl::VirtualGuardImpl(kDevice).getDevice().index();
    const bool capturing = is_capturing();
    if (is_late() && !capturing) wait_for_stream();
    variable_list found;
    if (at::GradMode::is_enabled()) {
      TORCH_CHECK_NOT_IMPLEMENTED(!capturing,
                                  "trapline: --cpu: a second derivative cannot be captured in a CUDA graph "
                                  "through dropout, attention or a recurrent layer");
      found = with_graph(*piece, inputs, gradients, device);
    } else {
      found = adopted(differentiate(*piece, leaves_of(gradients, false), false), device);
      if (capturing) {
        enqueue([piece, gradients, found] {
          copy_values(differentiate(*piece, leaves_of(gradients, false), false), found);
        });
      }
    }
    variable_list out(2);  // the piece and the device come first
    out.insert(out.end(), found.begin(), found.end());
    return out;
  }

 private:
  // The derivative is a piece of the CPU's graph itself: of what the first was given, and of the gradients.
  static variable_list with_graph(const Piece& piece, const variable_list& inputs,
                                  const variable_list& gradients, c10::DeviceIndex device) {
    const auto next = c10::make_intrusive<Piece>();
    const variable_list given = leaves_of(gradients, true);
    const variable_list found = differentiate(piece, given, true);
    next->leaves = piece.leaves;
    variable_list from = inputs;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i].defined()) continue;
      next->leaves.push_back(given[i]);
      from.push_back(gradients[i]);
    }
    for (const at::Tensor& gradient : found) {
      if (gradient.defined()) next->results.push_back(gradient);
    }
    variable_list out(found.size());
    if (next->results.empty()) return out;
    const variable_list made = OnCpu::apply(next, device, at::TensorList(from));
    std::size_t at = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].defined()) out[i] = made[at++];
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

bool is_mixed(const c10::OperatorHandle& op, Stack& arguments) {
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

// Tensors without memory: those of torch.compile, and of subclasses that are written in Python.
bool are_fake(const variable_list& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return tensor.key_set().has_any(c10::python_ks) || !tensor.has_storage() ||
           (tensor.is_cuda() && tensor.storage().device_type() != kDevice);
  });
}

class Whole final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    check_context();
    const std::size_t count = op.schema().arguments().size();
    Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
    const variable_list inputs = tensors_of(arguments);
    // Its own composition says what is wrong, in its own words. functorch has its own derivatives.
    if (are_fake(inputs) || is_mixed(op, arguments) || functorch_is_active())
      return op.redispatchBoxed(c10::DispatchKeySet(kNobody), stack);
    const bool capturing = is_capturing();
    if (is_late() && !capturing) wait_for_stream();
    torch::jit::drop(*stack, count);
    c10::DeviceIndex device = 0;
    for (const at::Tensor& input : inputs) {
      if (input.is_cuda()) device = input.device().index();
    }
    const Stack given = arguments;
    const auto piece = c10::make_intrusive<Piece>();
    {
      const KeepRandomState keep(capturing);
      run_piece(op, arguments, *piece);
    }
    const variable_list results = OnCpu::apply(piece, device, at::TensorList(inputs));
    if (capturing) {
      enqueue([op, given, piece, results] {
        Stack again = given;
        run_piece(op, again, *piece);
        copy_values(piece->results, results);
      });
    }
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
