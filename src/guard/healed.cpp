#include "guard/healed.hpp"

#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

namespace trapline::guard {
namespace {

// trapline::Predicate (src/contracts/contract.hpp): the part of it that can be healed.
enum Predicate : std::int32_t {
  kIndex = 0,
  kWrappedIndex = 1,
  kIndexList = 2,
  kUnitInterval = 3,
  kNonNegative = 4,
  kProbabilityRows = 5,
  kOffsets = 6,
  kPaddedIndex = 8,
  kEndedIndex = 9,
  kPivots = 10,
  kMaskCount = 14,
};

at::Tensor in_range(const trapline_contract& row, const trapline_scan& scan, const at::Tensor& tensor) {
  if (scan.lo >= scan.hi) return {};
  at::Tensor wide = at::empty(tensor.sizes(), at::TensorOptions().dtype(at::kLong));
  wide.copy_(tensor);
  auto* values = static_cast<std::int64_t*>(wide.data_ptr());
  for (std::int64_t i = 0, count = wide.numel(); i < count; ++i) {
    std::int64_t& value = values[i];
    if (row.predicate == kEndedIndex && value == -1) continue;  // ends a row
    if (scan.has_also != 0 && value == scan.also) continue;
    value = std::min(std::max(value, scan.lo), scan.hi - 1);
  }
  return wide.to(tensor.scalar_type());
}

at::Tensor in_interval(const at::Tensor& tensor, double high) {
  return at::clamp(at::nan_to_num(tensor, 0.0, high, 0.0), 0.0, high);
}

at::Tensor even_rows(const at::Tensor& tensor) {
  const at::Tensor even = at::ones_like(tensor);
  const at::Tensor bad = tensor.ge(0).logical_and(tensor.isfinite()).logical_not();
  const at::Tensor rows = tensor.dim() == 0
                              ? bad.logical_or(tensor.le(0))
                              : bad.any(-1, true).logical_or(tensor.gt(0).any(-1, true).logical_not());
  return at::where(rows, even, tensor);
}

}  // namespace

at::Tensor healed_copy(const trapline_contract& row, const trapline_scan& scan, const at::Tensor& tensor) {
  if (tensor.numel() * static_cast<std::int64_t>(sizeof(std::int64_t)) > kMostCopied) return {};
  const bool floating = at::isFloatingType(tensor.scalar_type());
  switch (row.predicate) {
    case kIndex:
    case kWrappedIndex:
    case kIndexList:
    case kPaddedIndex:
    case kEndedIndex:
    case kPivots:
      return in_range(row, scan, tensor);
    case kUnitInterval:
      return in_interval(tensor, 1.0);
    case kNonNegative:
      return floating ? in_interval(tensor, std::numeric_limits<double>::infinity()) : at::clamp(tensor, 0);
    case kProbabilityRows:
      return even_rows(tensor);
    case kOffsets:
    case kMaskCount:
      return at::zeros_like(tensor);
    default:
      return {};
  }
}

}  // namespace trapline::guard
