// scan_index and scan_offsets: the good path is one sweep; only a run with something bad in it is handed to
// the reference.
#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "checks/reference.hpp"
#include "checks/scan.hpp"
#include "checks/sweep.hpp"

namespace trapline {
namespace {

// A run is swept in blocks that stay in the second-level cache, so that a bad block is cheap to look at
// again.
constexpr std::int64_t kBlockBytes = std::int64_t{64} * 1024;

// [lo, hi) and `also`, as values of T.
template <class T>
struct Range {
  bool none = false;  // no T is in [lo, hi)
  T lo{}, hi{};       // inclusive
  bool has_also = false;
  T also{};

  Range(std::int64_t from, std::int64_t end, std::optional<std::int64_t> extra) {
    constexpr std::int64_t kMin = widen(std::numeric_limits<T>::min());
    constexpr std::int64_t kMax = std::numeric_limits<T>::max();
    none = end <= from || from > kMax || end <= kMin;
    if (!none) {
      lo = static_cast<T>(std::max(from, kMin));
      hi = static_cast<T>(std::min(end - 1, kMax));
    }
    has_also = extra && *extra >= kMin && *extra <= kMax;
    if (has_also) also = static_cast<T>(*extra);
  }
};

template <class T>
void add_run(Sweep<T>& sweep, const T* data, std::int64_t n, std::int64_t stride, const Range<T>& range) {
  if (stride == 1 && n >= kWorthSimd) {
    const auto count = static_cast<std::size_t>(n);
    const simd::Extremes<T> run = simd::extremes(data, count);
    bool bad = run.min < range.lo || run.max > range.hi;
    // Judging each element takes twice as long, so only where `also` can be what lies outside.
    if (bad && range.has_also) bad = simd::extremes_but(data, count, range.lo, range.hi, range.also).bad;
    sweep.add(run.min, run.max, bad);
    return;
  }
  T min = load(data);
  T max = min;
  bool bad = false;
  for (std::int64_t i = 0; i < n; ++i) {
    const T value = load(data + i * stride);
    min = value < min ? value : min;
    max = value > max ? value : max;
    const bool outside = value < range.lo || value > range.hi;
    bad |= outside && !(range.has_also && value == range.also);
  }
  sweep.add(min, max, bad);
}

void merge(IntScan& scan, const IntScan& block, std::int64_t start) {
  if (block.bad > 0 && scan.bad == 0) {
    scan.first = start + block.first;
    scan.value = block.value;
    scan.reason = block.reason;
  }
  scan.bad += block.bad;
  scan.min = start == 0 ? block.min : std::min(scan.min, block.min);
  scan.max = start == 0 ? block.max : std::max(scan.max, block.max);
}

template <class T>
IntScan scan_contiguous(const TensorView& view, std::int64_t total, const Range<T>& range, std::int64_t lo,
                        std::int64_t hi, std::optional<std::int64_t> also) {
  const T* data = static_cast<const T*>(view.data);
  constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(T));
  IntScan scan;
  for (std::int64_t start = 0; start < total; start += kBlock) {
    const std::int64_t n = std::min(kBlock, total - start);
    Sweep<T> sweep;
    add_run(sweep, data + start, n, 1, range);
    IntScan block;
    block.min = widen(sweep.min);
    block.max = widen(sweep.max);
    if (sweep.bad) {
      const std::array<std::int64_t, 1> size{n}, stride{1};
      block = reference::scan_index({data + start, view.dtype, size, stride}, lo, hi, also);
    }
    merge(scan, block, start);
  }
  scan.total = total;
  return scan;
}

template <class T>
IntScan scan_typed(const TensorView& view, std::int64_t lo, std::int64_t hi,
                   std::optional<std::int64_t> also) {
  const std::int64_t total = view.numel();
  const bool contiguous = view.is_contiguous();
  IntScan scan;
  if (contiguous && scan_small_index(static_cast<const T*>(view.data), total, lo, hi, also, scan))
    return scan;
  const Range<T> range(lo, hi, also);
  if (total <= kSmall || range.none) return reference::scan_index(view, lo, hi, also);
  if (contiguous) return scan_contiguous(view, total, range, lo, hi, also);
  const auto sweep =
      sweep_view<T, T>(view, [&](Sweep<T>& sofar, const T* data, std::int64_t n, std::int64_t stride) {
        add_run(sofar, data, n, stride, range);
      });
  if (sweep.bad) return reference::scan_index(view, lo, hi, also);
  scan.total = total;
  scan.min = widen(sweep.min);
  scan.max = widen(sweep.max);
  return scan;
}

// Contiguous and ascending: then the first and the last element are the extremes, and tell the rest.
template <class T>
bool offsets_are_good(const TensorView& view, std::int64_t total, std::int64_t limit, IntScan& scan) {
  const T* data = static_cast<const T*>(view.data);
  scan.total = total;
  scan.min = load(data);
  scan.max = load(data + total - 1);
  return scan.min == 0 && scan.max <= limit && simd::ascending(data, static_cast<std::size_t>(total));
}

}  // namespace

IntScan scan_index_any(const TensorView& view, std::int64_t lo, std::int64_t hi,
                       std::optional<std::int64_t> also) {
  return with_type(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      return scan_typed<T>(view, lo, hi, also);
    } else {  // bool masks are no index and rare; floating point has none
      return reference::scan_index(view, lo, hi, also);
    }
  });
}

IntScan scan_offsets(const TensorView& view, std::int64_t limit) {
  const std::int64_t total = view.numel();
  IntScan scan;
  if (total > kSmall && view.is_contiguous()) {
    if (view.dtype == DType::kInt64 && offsets_are_good<std::int64_t>(view, total, limit, scan)) return scan;
    if (view.dtype == DType::kInt32 && offsets_are_good<std::int32_t>(view, total, limit, scan)) return scan;
  }
  return reference::scan_offsets(view, limit);
}

}  // namespace trapline
