// Tensors that are not dense cannot be on this device: what would make or use one says so.
#include <torch/library.h>

#include "cpu_cuda/memory.hpp"

namespace trapline::cpu_cuda {
namespace {

void refuse_layout(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "trapline: --cpu: ", op.operator_name(),
                              " is for a tensor that is sparse, nested or quantized, which cannot be on this "
                              "device: keep it on the CPU, or run this part on a GPU");
}

const auto kRefuse = torch::CppFunction::makeFromBoxedFunction<&refuse_layout>;

TORCH_LIBRARY_IMPL(_, SparseCUDA, library) { library.fallback(kRefuse()); }
TORCH_LIBRARY_IMPL(_, SparseCsrCUDA, library) { library.fallback(kRefuse()); }
TORCH_LIBRARY_IMPL(_, NestedTensorCUDA, library) { library.fallback(kRefuse()); }
TORCH_LIBRARY_IMPL(_, QuantizedCUDA, library) { library.fallback(kRefuse()); }

// Compositions that make one out of dense parts.
TORCH_LIBRARY_IMPL(aten, AutogradCUDA, library) {
  library.impl("_sparse_compressed_tensor_unsafe", kRefuse());
  library.impl("_sparse_csr_tensor_unsafe", kRefuse());
}
TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("_nested_view_from_buffer", kRefuse());
  library.impl("quantize_per_tensor", kRefuse());
  library.impl("quantize_per_channel", kRefuse());
}

}  // namespace
}  // namespace trapline::cpu_cuda
