#include "guard/healed.hpp"

#include <ATen/ops/empty.h>

#include "guard/describe.hpp"

namespace trapline::guard {

at::Tensor healed_copy(const trapline_contract& row, const trapline_scan& scan, const at::Tensor& tensor) {
  if (tensor.numel() * static_cast<std::int64_t>(sizeof(std::int64_t)) > kMaxCopied) return {};
  trapline_tensor described;
  if (!describe(tensor, described)) return {};
  at::Tensor healed = at::empty(tensor.sizes(), at::TensorOptions().dtype(tensor.scalar_type()));
  const int verdict = trapline_heal_copy(row.predicate, &scan, &described, healed.data_ptr());
  return verdict == TRAPLINE_OK ? healed : at::Tensor();
}

}  // namespace trapline::guard
