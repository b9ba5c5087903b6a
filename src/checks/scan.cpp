#include "checks/scan.hpp"

#include "checks/reference.hpp"

namespace trapline {

IntScan scan_index(const TensorView& view, std::int64_t lo, std::int64_t hi,
                   std::optional<std::int64_t> also) {
  return reference::scan_index(view, lo, hi, also);
}
IntScan scan_offsets(const TensorView& view, std::int64_t limit) {
  return reference::scan_offsets(view, limit);
}
FloatScan scan_interval(const TensorView& view, double lo, double hi) {
  return reference::scan_interval(view, lo, hi);
}
FloatScan scan_finite(const TensorView& view) { return reference::scan_finite(view); }
FloatScan scan_non_negative(const TensorView& view) { return reference::scan_non_negative(view); }
FloatScan scan_probability_rows(const TensorView& view) { return reference::scan_probability_rows(view); }

}  // namespace trapline
