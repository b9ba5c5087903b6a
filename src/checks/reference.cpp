#include "checks/reference.hpp"

#include <algorithm>
#include <type_traits>

#include "checks/element.hpp"
#include "checks/walk.hpp"

namespace trapline::reference {
namespace {

// Calls visit(position, value) for every element in row-major order.
template <class T, class Visit>
void for_each_element(const TensorView& view, Visit&& visit) {
  const T* data = static_cast<const T*>(view.data);
  const Layout layout = row_major_layout(view, view.sizes.size());
  std::int64_t position = 0;
  for_each_offset(layout, layout.dims, [&](std::int64_t offset) {
    visit(position++, widen(load(data + offset)));
    return true;
  });
}

template <class Scan, class Value>
void record(Scan& scan, std::int64_t position, Value value, Reason reason) {
  if (reason == Reason::kNone) return;
  if (scan.bad++ > 0) return;
  scan.first = position;
  scan.value = value;
  scan.reason = reason;
}

// judge(position, value) is called once per element, in order.
template <class Judge>
IntScan scan_integers(const TensorView& view, Judge&& judge) {
  IntScan scan;
  scan.total = view.numel();
  if (scan.total == 0 || is_floating(view.dtype)) return scan;
  with_type(view.dtype, [&](auto tag) {
    if constexpr (std::is_same_v<decltype(widen(tag)), std::int64_t>) {
      for_each_element<decltype(tag)>(view, [&](std::int64_t position, std::int64_t value) {
        scan.min = position == 0 ? value : std::min(scan.min, value);
        scan.max = position == 0 ? value : std::max(scan.max, value);
        record(scan, position, value, judge(position, value));
      });
    }
  });
  return scan;
}

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
