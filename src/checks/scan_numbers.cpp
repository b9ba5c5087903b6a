// The scans of floating point numbers. Every predicate but the row's sum follows from the extremes and from
// whether a NaN is there, so one sweep serves them all; a block with something bad in it is handed to the
// reference.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>

#include "checks/element.hpp"
#include "checks/reference.hpp"
#include "checks/scan.hpp"
#include "checks/sweep.hpp"

namespace trapline {
namespace {

constexpr std::int64_t kBlockBytes = std::int64_t{64} * 1024;  // stays in the second-level cache

template <class T>
constexpr bool kNumber = !std::is_same_v<decltype(widen(T{})), std::int64_t>;

// Bad: there is a NaN; min and max then mean nothing.
using NumberSweep = Sweep<double>;

template <class T>
simd::Extremes<double> extremes_of(const T* data, std::size_t n) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  const auto run = simd::bit_extremes(reinterpret_cast<const Bits*>(data), n);
  const double min = widen(std::bit_cast<T>(run.min));
  const double max = widen(std::bit_cast<T>(run.max));
  return {min, max, element::is_nan(min) || element::is_nan(max)};
}

template <class T>
void add_run(NumberSweep& sweep, const T* data, std::int64_t n, std::int64_t stride) {
  if (stride == 1 && n >= kWorthSimd) {
    const simd::Extremes<double> run = extremes_of(data, static_cast<std::size_t>(n));
    sweep.add(run.min, run.max, run.bad);
    return;
  }
  double min = widen(load(data));
  double max = min;
  bool nan = false;
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = widen(load(data + i * stride));
    min = value < min ? value : min;
    max = value > max ? value : max;
    nan |= element::is_nan(value);
  }
  sweep.add(min, max, nan);
}

void merge(FloatScan& scan, const FloatScan& block, std::int64_t start) {
  if (block.bad > 0 && scan.bad == 0) {
    scan.first = start + block.first;
    scan.value = block.value;
    scan.reason = block.reason;
  }
  scan.bad += block.bad;
  if (!(block.min >= scan.min)) scan.min = element::is_nan(block.min) ? scan.min : block.min;
  if (!(block.max <= scan.max)) scan.max = element::is_nan(block.max) ? scan.max : block.max;
}

FloatScan from_sweep(const NumberSweep& sweep, std::int64_t total) {
  FloatScan scan;
  scan.total = total;
  scan.min = sweep.min + 0.0;  // -0.0 becomes 0.0
  scan.max = sweep.max + 0.0;
  return scan;
}

// good(min, max) decides about a block without NaN; exact(view) is the reference for the same predicate.
template <class T, class Good, class Exact>
FloatScan scan_typed(const TensorView& view, Good&& good, Exact&& exact) {
  const std::int64_t total = view.numel();
  if (total == 0) return exact(view);
  const auto is_good = [&](const NumberSweep& sweep) { return !sweep.bad && good(sweep.min, sweep.max); };
  if (!view.is_contiguous()) {
    if (total <= kSmall) return exact(view);
    const NumberSweep sweep = sweep_view<T, double>(view, add_run<T>);
    return is_good(sweep) ? from_sweep(sweep, total) : exact(view);
  }
  const T* data = static_cast<const T*>(view.data);
  constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(T));
  FloatScan scan;
  scan.total = total;
  for (std::int64_t start = 0; start < total; start += kBlock) {
    const std::int64_t n = std::min(kBlock, total - start);
    NumberSweep sweep;
    add_run(sweep, data + start, n, 1);
    const std::array<std::int64_t, 1> size{n}, stride{1};
    const TensorView block{data + start, view.dtype, size, stride};
    merge(scan, is_good(sweep) ? from_sweep(sweep, n) : exact(block), start);
  }
  return scan;
}

template <class Good, class Exact>
FloatScan scan_with(const TensorView& view, Good&& good, Exact&& exact) {
  return with_type(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (kNumber<T>) {
      return scan_typed<T>(view, good, exact);
    } else {  // integers where numbers are expected: correct is enough
      return exact(view);
    }
  });
}

template <class T>
FloatScan scan_rows(const TensorView& view) {
  FloatScan scan;
  scan.total = view.numel();
  if (scan.total == 0) return scan;
  const std::size_t outer = view.sizes.empty() ? 0 : view.sizes.size() - 1;
  const std::array<std::int64_t, 1> size{view.sizes.empty() ? 1 : view.sizes[outer]};
  const std::array<std::int64_t, 1> stride{size[0] == 1 ? 1 : view.strides[outer]};
  const T* data = static_cast<const T*>(view.data);
  std::int64_t start = 0;
  const Layout rows = row_major_layout(view, outer);
  for_each_offset(rows, rows.dims, [&](std::int64_t offset) {
    NumberSweep sweep;
    add_run(sweep, data + offset, size[0], stride[0]);
    // The sum of finite numbers >= 0 is > 0 exactly when the greatest is.
    const bool good = !sweep.bad && sweep.min >= 0 && sweep.max > 0 && !element::is_inf(sweep.max);
    const TensorView row{data + offset, view.dtype, size, stride};
    merge(scan, good ? from_sweep(sweep, size[0]) : reference::scan_probability_rows(row), start);
    start += size[0];
    return true;
  });
  return scan;
}

}  // namespace

FloatScan scan_interval(const TensorView& view, double lo, double hi) {
  return scan_with(
      view, [&](double min, double max) { return min >= lo && max <= hi; },
      [&](const TensorView& part) { return reference::scan_interval(part, lo, hi); });
}

FloatScan scan_finite(const TensorView& view) {
  return scan_with(
      view, [](double min, double max) { return !element::is_inf(min) && !element::is_inf(max); },
      reference::scan_finite);
}

FloatScan scan_non_negative(const TensorView& view) {
  if (!is_floating(view.dtype)) {
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    const IntScan ints = scan_index(view, 0, kMax, kMax);  // the end of the range is not in it: allowed apart
    FloatScan scan;
    scan.bad = ints.bad;
    scan.total = ints.total;
    scan.first = ints.first;
    scan.value = static_cast<double>(ints.value);
    if (ints.total > 0) {
      scan.min = static_cast<double>(ints.min);
      scan.max = static_cast<double>(ints.max);
    }
    scan.reason = ints.bad > 0 ? Reason::kNegative : Reason::kNone;
    return scan;
  }
  return scan_with(
      view, [](double min, double) { return min >= 0; }, reference::scan_non_negative);
}

FloatScan scan_probability_rows(const TensorView& view) {
  return with_type(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (kNumber<T>) {
      return scan_rows<T>(view);
    } else {
      return reference::scan_probability_rows(view);
    }
  });
}

}  // namespace trapline
