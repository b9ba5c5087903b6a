// The scalar reference: one element after the other in row-major order, any strides. It defines what the
// scans of scan.hpp answer; their contracts are described there.
#pragma once

#include <cstdint>
#include <optional>

#include "checks/scan_result.hpp"
#include "core/tensor_view.hpp"

namespace trapline::reference {

IntScan scan_index(const TensorView& view, std::int64_t lo, std::int64_t hi,
                   std::optional<std::int64_t> also);
IntScan scan_offsets(const TensorView& view, std::int64_t limit);
FloatScan scan_interval(const TensorView& view, double lo, double hi);
FloatScan scan_finite(const TensorView& view);
FloatScan scan_non_negative(const TensorView& view);
FloatScan scan_probability_rows(const TensorView& view);

}  // namespace trapline::reference
