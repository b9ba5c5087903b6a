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

// The scans below serve rare operations with small arguments, and the scalar reference is what they are.
// Rows are those of the last dimension; a 0-dim view is one row.

// Integers in [0, hi) up to the first -1 of their row; what follows it is not looked at, nor counted.
IntScan scan_ended_index(const TensorView& view, std::int64_t hi);

// Integers in [0, limit], ascending in each row.
IntScan scan_ends(const TensorView& view, std::int64_t limit);

// Compressed indices: from 0 to `limit` in each row, ascending by at most `width`.
IntScan scan_compressed(const TensorView& view, std::int64_t limit, std::int64_t width);

// Integers >= 0 whose sum in each row is at most `limit`, or exactly `limit`. A row that sums up to too much
// counts as one bad element, the first that does not fit; to too little, as its last.
enum class Sum : std::uint8_t { kAtMost, kExactly };
IntScan scan_counts(const TensorView& view, std::int64_t limit, Sum sum);

// A mask with at most `limit` elements that are not 0: the first one beyond is the first bad one, and all
// beyond are bad. Strides may be 0.
IntScan scan_mask(const TensorView& view, std::int64_t limit);

}  // namespace trapline
