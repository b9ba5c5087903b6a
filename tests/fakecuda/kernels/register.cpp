// Puts the CPU's kernels on the CUDA key of a PyTorch that has its own there, which NVIDIA's compilers made
// and nothing here can run. What is about memory, views and streams remains PyTorch's own.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_grouped_mm.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include <set>
#include <string>

#include "cpu_cuda/context.hpp"
#include "cpu_cuda/memory.hpp"
#include "cpu_cuda/plan.hpp"
#include "cpu_cuda/streams.hpp"

namespace trapline::cpu_cuda {
namespace {

using c10::DispatchKey;

// PyTorch's own kernels for CUDA that launch nothing, and those that stand below.
bool is_there(const std::string& name) {
  static const std::set<std::string> names = {"aten::empty",
                                              "aten::empty_strided",
                                              "aten::copy_",
                                              "aten::_local_scalar_dense",
                                              "aten::record_stream",
                                              "aten::resize_",
                                              "aten::resize_as_",
                                              "aten::set_",
                                              "aten::resize",
                                              "aten::set",
                                              "aten::_resize_output",
                                              "aten::_use_cudnn_ctc_loss",
                                              "aten::_embedding_bag_backward",
                                              "aten::_foreach_copy_"};
  return names.count(name) != 0;
}

bool copies_bytes(const at::Tensor& to, const at::Tensor& from) {
  return to.scalar_type() == from.scalar_type() && to.sizes() == from.sizes() && to.is_contiguous() &&
         from.is_contiguous() && to.is_conj() == from.is_conj() && to.is_neg() == from.is_neg();
}

// Copies that a kernel does on a GPU: other strides, other dtypes. All others end in cudaMemcpyAsync, by
// PyTorch's own function, which calls this for the parts of its way that need a kernel.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  check_context();
  const at::AutoDispatchBelowADInplaceOrView below;
  const bool by_kernel = self.is_cuda() && source.is_cuda() && !source._is_zerotensor() &&
                         at::is_expandable_to(source.sizes(), self.sizes()) && !copies_bytes(self, source);
  if (!by_kernel || self.numel() == 0) return at::native::copy_(self, source, non_blocking);
  if (self.device() != source.device()) {  // as PyTorch without peer access: converted, then moved
    const at::Tensor same = source.expand(self.sizes()).to(self.scalar_type()).contiguous();
    at::Tensor moved = at::empty_like(self, at::MemoryFormat::Contiguous);
    at::native::copy_(moved, same.resolve_conj().resolve_neg(), non_blocking);
    return self.copy_(moved, non_blocking);
  }
  const c10::cuda::CUDAGuard guard(self.device());
  enqueue([to = late_view(self), from = late_view(source)] {
    const at::AutoDispatchBelowADInplaceOrView below_here;
    const c10::impl::ExcludeDispatchKeyGuard unseen{DispatchKey::BackendSelect};
    const c10::impl::IncludeDispatchKeyGuard on_cpu{DispatchKey::CPU};
    at::native::copy_(const_cast<at::Tensor&>(to), from, false);
  });
  return self;
}

bool no_cudnn_ctc(const at::Tensor&, const at::Tensor&, at::IntArrayRef, at::IntArrayRef, std::int64_t) {
  return false;
}
bool no_cudnn_ctc_tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                         std::int64_t) {
  return false;
}

// The CPU has no kernel for it. CUDA's wants the weights transposed, and says so in these words.
at::Tensor scaled_grouped_mm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& scale_a,
                             const at::Tensor& scale_b, const std::optional<at::Tensor>& offs,
                             const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>&,
                             std::optional<at::ScalarType>, bool) {
  TORCH_CHECK_VALUE(self.stride(-1) == 1, "Expected mat1 to not be transposed");
  TORCH_CHECK_VALUE(mat2.stride(-2) == 1, "Expected mat2 to be transposed");
  TORCH_CHECK_NOT_IMPLEMENTED(self.dim() == 2 && mat2.dim() == 3,
                              "fake_cuda: _scaled_grouped_mm: only 2D by 3D");
  const at::Tensor a = (self.to(at::kFloat) * scale_a.unsqueeze(-1)).to(at::kBFloat16);
  const at::Tensor b = (mat2.to(at::kFloat) * scale_b.unsqueeze(-2)).to(at::kBFloat16);
  return at::_grouped_mm(a, b, offs, bias);
}

// PyTorch's composition, where it has a kernel for CUDA beside it.
void compose(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(kNobody), stack);
}

// CUDA's kernel reads a row of labels up to its first -1; the CPU's wants those behind it to be labels, too.
// The kernel of the CPU waits on a key that no backend of this process has.
constexpr DispatchKey kBehind = DispatchKey::FPGA;
constexpr const char* kMargin = "aten::multilabel_margin_loss_forward";

void margin_loss(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::IValue& target = (*stack)[stack->size() - op.schema().arguments().size() + 1];
  const at::Tensor labels = target.toTensor();
  if (labels.is_cuda() && labels.dim() != 0) target = labels.masked_fill(labels.eq(-1).cumsum(-1).gt(0), -1);
  op.redispatchBoxed(c10::DispatchKeySet(kBehind), stack);
}

struct Silent final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

struct RegisterOperations {
  RegisterOperations() {
    static torch::Library library(torch::Library::IMPL, "aten", DispatchKey::CUDA, __FILE__, __LINE__);
    Silent silent;  // that PyTorch's kernels are replaced is meant
    const c10::WarningUtils::WarningHandlerGuard guard(&silent);
    library.impl("copy_", TORCH_FN(copy_));
    library.impl("_use_cudnn_ctc_loss", TORCH_FN(no_cudnn_ctc));
    library.impl("_use_cudnn_ctc_loss.Tensor", TORCH_FN(no_cudnn_ctc_tensor));
    // A function of PyTorch's for both, which calls the one that reads the indices: the guard sees that call.
    library.impl("_embedding_bag_backward", TORCH_FN(at::native::_embedding_bag_backward_symint));
    library.impl("_foreach_copy_", torch::CppFunction::makeFromBoxedFunction<&compose>());
    library.impl("_scaled_grouped_mm", TORCH_FN(scaled_grouped_mm));
    static torch::Library autograd(torch::Library::IMPL, "aten", DispatchKey::AutogradCUDA, __FILE__,
                                   __LINE__);
    for (torch::Library* at : {&library, &autograd})
      at->impl("_fused_rms_norm", torch::CppFunction::makeFromBoxedFunction<&compose>());
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      if (name.name.rfind("aten::", 0) != 0 || is_there(name.name)) continue;
      const auto op = dispatcher.findSchema(name);
      if (op && way_of(*op) == Way::kHost) register_host(library, *op);
    }
    static torch::Library behind(torch::Library::IMPL, "aten", kBehind, __FILE__, __LINE__);
    register_host(behind, *dispatcher.findSchema({kMargin, ""}));
    library.impl(kMargin, torch::CppFunction::makeFromBoxedFunction<&margin_loss>());
    auto& context = at::globalContext();
    context.setUserEnabledCuDNN(false);
    context.setSDPUseFlash(false);  // attention by its formula, where it is not the CPU's as a whole
    context.setSDPUseMemEfficient(false);
    context.setSDPUseCuDNN(false);
  }
} g_register_operations;

}  // namespace
}  // namespace trapline::cpu_cuda
