// Scans in which an element is judged together with those before it in its row.
#include "checks/element.hpp"
#include "checks/reference_walk.hpp"
#include "checks/scan.hpp"

namespace trapline {
namespace {

std::int64_t row_size(const TensorView& view) { return view.sizes.empty() ? 1 : view.sizes.back(); }

}  // namespace

IntScan scan_ended_index(const TensorView& view, std::int64_t hi) {
  const std::int64_t row = row_size(view);
  IntScan scan;
  if (view.numel() == 0 || is_floating(view.dtype)) return scan;
  bool ended = false;
  with_type(view.dtype, [&](auto tag) {
    if constexpr (std::is_same_v<decltype(widen(tag)), std::int64_t>) {
      reference::for_each_element<decltype(tag)>(view, [&](std::int64_t position, std::int64_t value) {
        if (position % row == 0) ended = false;
        ended = ended || value == -1;
        if (ended) return;
        scan.min = scan.total == 0 ? value : std::min(scan.min, value);
        scan.max = scan.total == 0 ? value : std::max(scan.max, value);
        ++scan.total;
        reference::record(scan, position, value, element::index(value, 0, hi));
      });
    }
  });
  return scan;
}

IntScan scan_ends(const TensorView& view, std::int64_t limit) {
  const std::int64_t row = row_size(view);
  std::int64_t previous = 0;
  return reference::scan_integers(view, [&](std::int64_t position, std::int64_t value) {
    const Reason reason = element::end(value, position % row == 0, previous, limit);
    previous = value;
    return reason;
  });
}

IntScan scan_compressed(const TensorView& view, std::int64_t limit, std::int64_t width) {
  const std::int64_t row = row_size(view);
  std::int64_t previous = 0;
  return reference::scan_integers(view, [&](std::int64_t position, std::int64_t value) {
    const bool is_first = position % row == 0, is_last = position % row == row - 1;
    const Reason reason = element::compressed(value, is_first, is_last, previous, limit, width);
    previous = value;
    return reason;
  });
}

IntScan scan_counts(const TensorView& view, std::int64_t limit, Sum sum) {
  const std::int64_t row = row_size(view);
  std::int64_t left = limit;
  bool judged = false;  // one word about the sum of a row is enough
  return reference::scan_integers(view, [&](std::int64_t position, std::int64_t value) {
    if (position % row == 0) {
      left = limit;
      judged = false;
    }
    const Reason reason = element::count(value, left);
    if (reason == Reason::kBelow) {
      judged = true;
      return reason;
    }
    if (judged) return Reason::kNone;
    if (reason == Reason::kTooMany) {
      judged = true;
      return reason;
    }
    left -= value;
    const bool is_last = position % row == row - 1;
    return is_last && sum == Sum::kExactly && left > 0 ? Reason::kTooFew : Reason::kNone;
  });
}

IntScan scan_mask(const TensorView& view, std::int64_t limit) {
  if (view.dtype == DType::kBool && view.is_contiguous()) {
    // A loop that compilers turn into SIMD: bytes that are not 0.
    const auto* bytes = static_cast<const std::uint8_t*>(view.data);
    const std::int64_t total = view.numel();
    std::int64_t marked = 0;
    for (std::int64_t i = 0; i < total; ++i) marked += bytes[i] != 0 ? 1 : 0;
    if (marked <= limit) {
      IntScan scan;
      scan.total = total;
      scan.min = total > 0 && marked == total ? 1 : 0;
      scan.max = marked > 0 ? 1 : 0;
      return scan;
    }
  }
  std::int64_t left = limit;
  return reference::scan_integers(view, [&](std::int64_t, std::int64_t value) {
    return value != 0 && --left < 0 ? Reason::kTooMany : Reason::kNone;
  });
}

}  // namespace trapline
