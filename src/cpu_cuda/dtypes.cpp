#include "cpu_cuda/dtypes.hpp"

#include <ATen/Dispatch.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>

#include "cpu_cuda/memory.hpp"
#include "cpu_cuda/streams.hpp"

namespace trapline::cpu_cuda {
namespace {

using torch::jit::Stack;

c10::IValue& argument(const c10::OperatorHandle& op, Stack& stack, std::size_t at) {
  return stack[stack.size() - op.schema().arguments().size() + at];
}

[[noreturn]] void refuse(const char* kernel, at::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, '"', kernel, "\" not implemented for '", toString(dtype), "'");
}

// Products of integers, which cuBLAS has not. `kernel` as in PyTorch's AT_DISPATCH for CUDA.
template <const char* kKernel>
bool floating_only(const c10::OperatorHandle& op, Stack& stack) {
  const at::ScalarType dtype = argument(op, stack, 0).toTensor().scalar_type();
  if (at::isIntegralType(dtype, true)) refuse(kKernel, dtype);
  return false;
}

constexpr char kAddmm[] = "addmm_cuda";
constexpr char kBaddbmm[] = "baddbmm_cuda";
constexpr char kAddmv[] = "addmv_impl_cuda";
constexpr char kDot[] = "dot";
constexpr char kVdot[] = "vdot";
constexpr char kPool[] = "avg_pool2d_out_cuda_frame";

// Without cuDNN, which takes floating point only, one and two dimensions come to this kernel.
bool convolution(const c10::OperatorHandle& op, Stack& stack) {
  const at::Tensor& input = argument(op, stack, 0).toTensor();
  if (input.dim() <= 4 && at::isIntegralType(input.scalar_type(), true))
    refuse("slow_conv2d_cuda", input.scalar_type());
  return false;
}

// Labels are int64 or uint8.
bool nll_loss(const c10::OperatorHandle& op, Stack& stack) {
  const at::Tensor& self = argument(op, stack, 0).toTensor();
  const at::ScalarType dtype = argument(op, stack, 1).toTensor().scalar_type();
  if (dtype == at::kLong || dtype == at::kByte || !at::isIntegralType(dtype, true)) return false;
  const bool no_reduction = argument(op, stack, 3).toInt() == 0;
  if (self.dim() == 2 && no_reduction) refuse("nll_loss_forward_no_reduce_cuda_kernel_index", dtype);
  refuse(self.dim() == 1 ? "nll_loss_forward_reduce_cuda_kernel_1d_index"
                         : "nll_loss_forward_reduce_cuda_kernel_2d_index",
         dtype);
}

// With `half_to_float` CUDA reads float16 and writes float32; the CPU does the same in two operations.
bool softmax(const c10::OperatorHandle& op, Stack& stack) {
  c10::IValue& half_to_float = argument(op, stack, 2);
  c10::IValue& self = argument(op, stack, 0);
  if (!half_to_float.toBool() || self.toTensor().scalar_type() != at::kHalf) return false;
  self = self.toTensor().to(at::kFloat);
  half_to_float = false;
  op.callBoxed(&stack);
  return true;
}

bool softmax_backward(const c10::OperatorHandle& op, Stack& stack) {
  const at::ScalarType given = argument(op, stack, 0).toTensor().scalar_type();
  c10::IValue& of_input = argument(op, stack, 3);
  const at::ScalarType wanted = of_input.toScalarType();
  if (given != at::kFloat || wanted != at::kHalf) return false;
  of_input = given;
  op.callBoxed(&stack);
  stack.back() = stack.back().toTensor().to(wanted);
  return true;
}

// As CUDA's kernel counts integers: (value - low) * bins / (high - low), all in the integers' own dtype.
bool histc(const c10::OperatorHandle& op, Stack& stack) {
  const at::Tensor self = argument(op, stack, 0).toTensor();
  if (!at::isIntegralType(self.scalar_type(), false)) return false;
  wait_for_stream();
  const std::int64_t bins = argument(op, stack, 1).toInt();
  TORCH_CHECK(bins > 0, "bins must be > 0");
  const at::Tensor values = host_view(self).contiguous().view(-1);
  at::Tensor counts = at::zeros({bins}, values.options());
  AT_DISPATCH_INTEGRAL_TYPES(values.scalar_type(), "histc", [&] {
    const scalar_t* data = values.const_data_ptr<scalar_t>();
    const std::int64_t count = values.numel();
    scalar_t low = argument(op, stack, 2).toScalar().to<scalar_t>();
    scalar_t high = argument(op, stack, 3).toScalar().to<scalar_t>();
    if (low == high && count != 0) {
      low = *std::min_element(data, data + count);
      high = *std::max_element(data, data + count);
    }
    if (low == high) {
      low = static_cast<scalar_t>(low - 1);
      high = static_cast<scalar_t>(high + 1);
    }
    TORCH_CHECK(low < high, "max must be larger than min");
    scalar_t* out = counts.mutable_data_ptr<scalar_t>();
    for (std::int64_t i = 0; i < count; ++i) {
      if (data[i] < low || data[i] > high) continue;
      const auto bin = static_cast<std::int64_t>((data[i] - low) * bins / (high - low));
      ++out[std::min(bin, bins - 1)];
    }
  });
  torch::jit::drop(stack, op.schema().arguments().size());
  stack.push_back(adopt(counts, self.device().index()));
  return true;
}

const std::map<std::string, Adapter>& adapters() {
  static const std::map<std::string, Adapter> all = {
      {"aten::mm", floating_only<kAddmm>},
      {"aten::addmm", floating_only<kAddmm>},
      {"aten::addmm_", floating_only<kAddmm>},
      {"aten::bmm", floating_only<kBaddbmm>},
      {"aten::baddbmm", floating_only<kBaddbmm>},
      {"aten::baddbmm_", floating_only<kBaddbmm>},
      {"aten::mv", floating_only<kAddmv>},
      {"aten::addmv", floating_only<kAddmv>},
      {"aten::addmv_", floating_only<kAddmv>},
      {"aten::dot", floating_only<kDot>},
      {"aten::vdot", floating_only<kVdot>},
      {"aten::convolution", convolution},
      {"aten::avg_pool2d", floating_only<kPool>},
      {"aten::nll_loss_forward", nll_loss},
      {"aten::_softmax", softmax},
      {"aten::_log_softmax", softmax},
      {"aten::_softmax_backward_data", softmax_backward},
      {"aten::_log_softmax_backward_data", softmax_backward},
      {"aten::histc", histc},
  };
  return all;
}

}  // namespace

Adapter adapter(const std::string& op) {
  const auto found = adapters().find(op);
  return found == adapters().end() ? nullptr : found->second;
}

}  // namespace trapline::cpu_cuda
