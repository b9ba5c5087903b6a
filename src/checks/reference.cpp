#include "checks/reference.hpp"

#include <algorithm>
#include <type_traits>

#include "checks/element.hpp"
#include "checks/reference_walk.hpp"

namespace trapline::reference {
namespace {

void widen_range(FloatScan& scan, double value) {
  if (element::is_nan(value)) return;
  scan.min = element::is_nan(scan.min) ? value : std::min(scan.min, value);
  scan.max = element::is_nan(scan.max) ? value : std::max(scan.max, value);
}

template <class Judge>
FloatScan scan_numbers(const TensorView& view, Judge&& judge) {
  FloatScan scan;
  scan.total = view.numel();
  if (scan.total == 0) return scan;
  with_type(view.dtype, [&](auto tag) {
    for_each_element<decltype(tag)>(view, [&](std::int64_t position, auto exact) {
      const double value = static_cast<double>(exact);
      widen_range(scan, value);
      record(scan, position, value, judge(value));
    });
  });
  scan.min += 0.0;  // -0.0 becomes 0.0
  scan.max += 0.0;
  return scan;
}

}  // namespace

IntScan scan_index(const TensorView& view, std::int64_t lo, std::int64_t hi,
                   std::optional<std::int64_t> also) {
  return scan_integers(view, [&](std::int64_t, std::int64_t value) {
    return value == also ? Reason::kNone : element::index(value, lo, hi);
  });
}

IntScan scan_offsets(const TensorView& view, std::int64_t limit) {
  std::int64_t previous = 0;
  return scan_integers(view, [&](std::int64_t position, std::int64_t value) {
    const Reason reason = element::offset(value, position == 0, previous, limit);
    previous = value;
    return reason;
  });
}

FloatScan scan_interval(const TensorView& view, double lo, double hi) {
  return scan_numbers(view, [&](double value) { return element::interval(value, lo, hi); });
}

FloatScan scan_finite(const TensorView& view) {
  return scan_numbers(view, [](double value) { return element::finite(value); });
}

FloatScan scan_non_negative(const TensorView& view) {
  return scan_numbers(view, [](double value) { return element::non_negative(value); });
}

FloatScan scan_probability_rows(const TensorView& view) {
  FloatScan scan;
  scan.total = view.numel();
  if (scan.total == 0) return scan;
  const std::int64_t row_size = view.sizes.empty() ? 1 : view.sizes.back();
  with_type(view.dtype, [&](auto tag) {
    std::int64_t row_start = 0;
    double row_first = 0;
    Reason row_reason = Reason::kNone;
    bool positive = false;  // a sum of finite, non-negative numbers is > 0 exactly when one of them is
    for_each_element<decltype(tag)>(view, [&](std::int64_t position, auto exact) {
      const double value = static_cast<double>(exact);
      widen_range(scan, value);
      if (position == row_start) {
        row_first = value;
        row_reason = Reason::kNone;
        positive = false;
      }
      const Reason reason = element::probability(value);
      record(scan, position, value, reason);
      if (row_reason == Reason::kNone) row_reason = reason;
      positive = positive || value > 0;
      if (position + 1 < row_start + row_size) return;
      if (row_reason == Reason::kNone && !positive) record(scan, row_start, row_first, Reason::kZeroSum);
      row_start += row_size;
    });
  });
  scan.min += 0.0;
  scan.max += 0.0;
  return scan;
}

}  // namespace trapline::reference
