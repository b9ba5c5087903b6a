// The short cut for a handful of elements, where a call through the dispatch table would cost more than the
// scan.
#pragma once

#include <algorithm>
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
    // Two chains: each comparison waits for the one before it.
    std::int64_t min2 = min, max2 = max;
    for (std::int64_t i = 1; i + 1 < n; i += 2) {
      const std::int64_t value = widen(load(data + i)), value2 = widen(load(data + i + 1));
      min = value < min ? value : min;
      max = value > max ? value : max;
      min2 = value2 < min2 ? value2 : min2;
      max2 = value2 > max2 ? value2 : max2;
    }
    const std::int64_t last = widen(load(data + n - 1));
    min = std::min({min, min2, last});
    max = std::max({max, max2, last});
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
