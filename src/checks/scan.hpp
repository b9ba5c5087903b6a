// The predicates over tensor views: for each one, the first bad element, its value, why it is bad, how many
// are bad, and the range of all elements. Nothing is allocated, nothing is thrown, the data is only read.
#pragma once

#include <cstdint>
#include <optional>

#include "checks/scan_result.hpp"
#include "checks/scan_small.hpp"
#include "core/tensor_view.hpp"

namespace trapline {

// The way of scan_index for all that its short cut does not take.
IntScan scan_index_any(const TensorView& view, std::int64_t lo, std::int64_t hi,
                       std::optional<std::int64_t> also);

// Integers (bool counts as 0 and 1) in [lo, hi), or equal to `also`. A view of floating point has no index:
// nothing of it is read and nothing is bad.
inline IntScan scan_index(const TensorView& view, std::int64_t lo, std::int64_t hi,
                          std::optional<std::int64_t> also) {
  if (view.dtype == DType::kInt64 && view.is_contiguous()) {
    IntScan scan;
    const auto* data = static_cast<const std::int64_t*>(view.data);
    if (scan_small_index(data, view.numel(), lo, hi, also, scan)) return scan;
  }
  return scan_index_any(view, lo, hi, also);
}

// Integers: the first is 0, none is less than the one before it, none is more than `limit`.
IntScan scan_offsets(const TensorView& view, std::int64_t limit);

// Numbers in [lo, hi]; NaN is bad. Views of integers are judged as numbers, here and below.
FloatScan scan_interval(const TensorView& view, double lo, double hi);

FloatScan scan_finite(const TensorView& view);

// Numbers >= 0; NaN is bad, positive infinity is not.
FloatScan scan_non_negative(const TensorView& view);

// Rows of the last dimension (a 0-dim or 1-dim view is one row): every number finite and >= 0, and the row's
// sum > 0. A row without a sum counts as one bad element, its first, and only when its numbers are good.
FloatScan scan_probability_rows(const TensorView& view);

}  // namespace trapline
