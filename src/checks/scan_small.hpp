// The short cut for a handful of elements, where a call through the dispatch table would cost more than the
// scan.
#pragma once

#include <cstdint>
#include <optional>

#include "checks/scan_result.hpp"
#include "checks/walk.hpp"

namespace trapline {

inline constexpr std::int64_t kSmall =
    32;  // elements; from there on SIMD is faster, measured by bench/checks

// True, and the answer in `scan`, when 0 < n <= kSmall and all is well; else the caller has to scan in full.
template <class T>
bool scan_small_index(const T* data, std::int64_t n, std::int64_t lo, std::int64_t hi,
                      std::optional<std::int64_t> also, IntScan& scan) {
  if (n <= 0 || n > kSmall) return false;
  std::int64_t min = widen(load(data));
  std::int64_t max = min;
  if (!also) {  // all are in [lo, hi) when the extremes are
    for (std::int64_t i = 1; i < n; ++i) {
      const std::int64_t value = widen(load(data + i));
      min = value < min ? value : min;
      max = value > max ? value : max;
    }
    if (min < lo || max >= hi) return false;
  } else {
    const std::int64_t extra = *also;
    bool bad = false;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t value = widen(load(data + i));
      min = value < min ? value : min;
      max = value > max ? value : max;
      bad |= ((value < lo) | (value >= hi)) & (value != extra);
    }
    if (bad) return false;
  }
  scan.total = n;
  scan.min = min;
  scan.max = max;
  return true;
}

}  // namespace trapline
