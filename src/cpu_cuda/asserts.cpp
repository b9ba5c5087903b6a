#include "cpu_cuda/asserts.hpp"

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DynamicCast.h>

#include <cmath>
#include <cstdint>
#include <map>

namespace trapline::cpu_cuda {
namespace {

using torch::jit::Stack;

// The place of the first element that is bad, in the order of the elements; -1: none is. Reads the memory
// itself: it is asked on the threads of streams, where no operation may be called.
template <class Bad>
std::int64_t first(const at::Tensor& tensor, const Bad& bad) {
  if (!tensor.defined() || tensor.numel() == 0) return -1;
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  const c10::ScalarType dtype = tensor.scalar_type();
  const auto* data = static_cast<const char*>(tensor.const_data_ptr());
  const auto width = static_cast<std::int64_t>(tensor.itemsize());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::int64_t offset = 0, rest = i;
    for (std::int64_t dim = tensor.dim() - 1; dim >= 0; --dim) {
      offset += rest % sizes[dim] * strides[dim];
      rest /= sizes[dim];
    }
    if (bad(c10::fetch_and_cast<double>(dtype, data + offset * width))) return i;
  }
  return -1;
}

std::int64_t outside(const at::Tensor& tensor, std::int64_t low, std::int64_t high) {
  return first(tensor,
               [=](double v) { return !(v >= static_cast<double>(low) && v < static_cast<double>(high)); });
}

std::string line(const char* place, const char* kernel, std::int64_t thread, const char* condition) {
  return std::string("../aten/src/ATen/native/cuda/") + place + ": " + kernel +
         ": block: [0,0,0], thread: [" + std::to_string(thread) + ",0,0] Assertion `" + condition +
         "` failed.";
}

// `place` < 0: nothing is bad, and nothing is printed.
std::string line_if(std::int64_t place, const char* where, const char* kernel, const char* condition) {
  return place < 0 ? "" : line(where, kernel, 0, condition);
}

std::string selected(const at::Tensor& index, std::int64_t size) {
  return line_if(outside(index, 0, size), "Indexing.cu:1587", "indexSelectSmallIndex",
                 "srcIndex < srcSelectDimSize");
}

std::int64_t size_along(const at::Tensor& self, std::int64_t dim) {
  if (self.dim() == 0) return 1;
  return self.size(dim < 0 ? dim + self.dim() : dim);
}

std::string embedding(const Stack& a) { return selected(a[1].toTensor(), a[0].toTensor().size(0)); }

std::string index_select(const Stack& a) {
  return selected(a[2].toTensor(), size_along(a[0].toTensor(), a[1].toInt()));
}

std::string index_add(const Stack& a) {
  return line_if(outside(a[2].toTensor(), 0, size_along(a[0].toTensor(), a[1].toInt())), "Indexing.cu:1022",
                 "indexFuncSmallIndex", "dstIndex < static_cast<IndexType>(dstAddDimSize)");
}

std::string index_fill(const Stack& a) {
  const std::int64_t size = size_along(a[0].toTensor(), a[1].toInt());
  return line_if(outside(a[2].toTensor(), -size, size), "IndexKernel.cu:154", "operator()",
                 "idx >= -self_dim_size && idx < self_dim_size && \"index out of bounds\"");
}

std::string index_copy(const Stack& a) {
  return line_if(outside(a[2].toTensor(), 0, size_along(a[0].toTensor(), a[1].toInt())), "IndexKernel.cu:193",
                 "operator()", "idx >= 0 && idx < self_dim_size && \"index_copy_(): index out of bounds\"");
}

std::string gather(const Stack& a) {
  return line_if(outside(a[2].toTensor(), 0, size_along(a[0].toTensor(), a[1].toInt())),
                 "ScatterGatherKernel.cu:163", "operator()",
                 "idx_dim >= 0 && idx_dim < index_size && \"scatter gather kernel index out of bounds\"");
}

std::string scatter(const Stack& a) {
  return line_if(outside(a[2].toTensor(), 0, size_along(a[0].toTensor(), a[1].toInt())),
                 "ScatterGatherKernel.cu:409", "operator()",
                 "idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\"");
}

std::string take(const Stack& a) {
  const std::int64_t size = a[0].toTensor().numel();
  return line_if(outside(a[1].toTensor(), -size, size), "IndexKernel.cu:339", "operator()",
                 "idx < numel && idx >= -numel && \"cuda_take_put_kernel() index out of bounds\"");
}

std::string index_list(const Stack& a) {
  const at::Tensor& self = a[0].toTensor();
  std::int64_t dim = 0;
  for (const c10::IValue& element : a[1].toListRef()) {
    const bool given = element.isTensor() && element.toTensor().defined();
    if (given &&
        (element.toTensor().scalar_type() == at::kBool || element.toTensor().scalar_type() == at::kByte)) {
      dim += element.toTensor().dim();  // a mask
      continue;
    }
    if (dim >= self.dim()) break;
    if (given && outside(element.toTensor(), -self.size(dim), self.size(dim)) >= 0)
      return line("IndexKernel.cu:111", "operator()", 0,
                  "-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"");
    ++dim;
  }
  return "";
}

std::int64_t bad_label(const at::Tensor& logits, const at::Tensor& target, std::int64_t ignored) {
  const auto classes = static_cast<double>(logits.size(logits.dim() == 1 ? 0 : 1));
  return first(target,
               [=](double v) { return v != static_cast<double>(ignored) && (v < 0 || v >= classes); });
}

std::string nll(const Stack& a) {
  const at::Tensor& logits = a[0].toTensor();
  const std::int64_t bad = bad_label(logits, a[1].toTensor(), a[4].toInt());
  if (bad < 0) return "";
  if (a[3].toInt() == 0 && logits.dim() == 2)  // Reduction::None
    return line("Loss.cu:180", "nll_loss_forward_no_reduce_cuda_kernel", 0,
                "cur_target >= 0 && cur_target < n_classes");
  if (logits.dim() == 1)
    return line("Loss.cu:201", "nll_loss_forward_reduce_cuda_kernel_1d", 0, "t >= 0 && t < n_classes");
  // One block, whose 32 threads take every 32nd row each.
  return line("Loss.cu:245", "nll_loss_forward_reduce_cuda_kernel_2d", bad % 32, "t >= 0 && t < n_classes");
}

std::string nll_backward(const Stack& a) {
  return line_if(bad_label(a[1].toTensor(), a[2].toTensor(), a[5].toInt()), "Loss.cu:366",
                 "nll_loss_backward_reduce_cuda_kernel_2d", "t >= 0 && t < n_classes");
}

// CUDA's kernel does not look: it writes beside the table.
std::string embedding_backward(const Stack& a) {
  return outside(a[1].toTensor(), 0, a[2].toInt()) < 0
             ? ""
             : "trapline: --cpu: embedding_dense_backward would write out of bounds";
}

std::string nll_2d(const Stack& a) {
  return line_if(bad_label(a[0].toTensor(), a[1].toTensor(), a[4].toInt()), "NLLLoss2d.cu:106",
                 "nll_loss2d_forward_kernel", "t >= 0 && t < n_classes");
}

std::string unit_interval(const Stack& a) {
  const auto bad = [](double v) { return !(v >= 0 && v <= 1); };
  const std::string of_input = line_if(first(a[0].toTensor(), bad), "Loss.cu:90", "operator()",
                                       "input_val >= zero && input_val <= one");
  if (!of_input.empty()) return of_input;
  return line_if(first(a[1].toTensor(), bad), "Loss.cu:91", "operator()",
                 "target_val >= zero && target_val <= one");
}

std::string multinomial(const Stack& a) {
  return line_if(first(a[0].toTensor(), [](double v) { return !(v >= 0) || std::isinf(v); }),
                 "TensorCompare.cu:109", "_assert_async_cuda_kernel",
                 "probability tensor contains either `inf`, `nan` or element < 0");
}

std::string bernoulli(const Stack& a) {
  return line_if(first(a[1].toTensor(), [](double v) { return !(v >= 0 && v <= 1); }),
                 "DistributionTemplates.h:624", "operator()", "0 <= p4 && p4 <= 1");
}

std::string poisson(const Stack& a) {
  return line_if(first(a[0].toTensor(), [](double v) { return !(v >= 0); }), "Distributions.cu:50",
                 "operator()", "lambda >= 0 && \"invalid Poisson rate, expected rate to be non-negative\"");
}

std::string multi_margin(const Stack& a) {
  const at::Tensor& self = a[0].toTensor();
  return line_if(outside(a[1].toTensor(), 0, size_along(self, self.dim() - 1)), "MultiMarginLoss.cu:34",
                 "MultiMarginLoss_forward_kernel",
                 "target_k >= 0 && target_k < dim && \"target index is out of bounds\"");
}

// The program's own assertion, with its own words where it gave some.
std::string assert_async(const Stack& a) {
  const std::string words = a.size() > 1 && a[1].isString() ? a[1].toStringRef() : "input[0] != 0";
  return line_if(first(a[0].toTensor(), [](double v) { return v == 0; }), "TensorCompare.cu:109",
                 "_assert_async_cuda_kernel", words.c_str());
}

const std::map<std::string, AssertCheck>& table() {
  static const std::map<std::string, AssertCheck> all = {
      {"aten::embedding", embedding},
      {"aten::index_select", index_select},
      {"aten::index_add", index_add},
      {"aten::index_add_", index_add},
      {"aten::index_reduce", index_add},
      {"aten::index_reduce_", index_add},
      {"aten::index_copy", index_copy},
      {"aten::index_copy_", index_copy},
      {"aten::index_fill_", index_fill},
      {"aten::gather", gather},
      {"aten::scatter", scatter},
      {"aten::scatter_", scatter},
      {"aten::scatter_add", scatter},
      {"aten::scatter_add_", scatter},
      {"aten::scatter_reduce", scatter},
      {"aten::scatter_reduce_", scatter},
      {"aten::take", take},
      {"aten::put_", take},
      {"aten::index", index_list},
      {"aten::_unsafe_index", index_list},
      {"aten::index_put", index_list},
      {"aten::index_put_", index_list},
      {"aten::_index_put_impl_", index_list},
      {"aten::nll_loss_forward", nll},
      {"aten::nll_loss2d_forward", nll_2d},
      {"aten::nll_loss_backward", nll_backward},
      {"aten::embedding_dense_backward", embedding_backward},
      {"aten::binary_cross_entropy", unit_interval},
      {"aten::multinomial", multinomial},
      {"aten::bernoulli_", bernoulli},
      {"aten::poisson", poisson},
      {"aten::multi_margin_loss", multi_margin},
      {"aten::_assert_async", assert_async},
  };
  return all;
}

}  // namespace

AssertCheck assert_check(const std::string& op) {
  const auto found = table().find(op);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace trapline::cpu_cuda
