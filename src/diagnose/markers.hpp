// Integers that programs write for "nothing here".
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

namespace trapline::diagnose {

// What losses and data sets call "not to count": -3 marks nothing.
inline constexpr std::int64_t kIgnoreMarks[] = {-1, -100};
// Besides these, what tables of values write for a missing one.
inline constexpr std::int64_t kMissingMarks[] = {-99, -999, -9999};

inline bool marks_ignored(std::int64_t value) {
  return std::ranges::find(kIgnoreMarks, value) != std::end(kIgnoreMarks);
}

inline bool marks_nothing(std::int64_t value) {
  return marks_ignored(value) || std::ranges::find(kMissingMarks, value) != std::end(kMissingMarks);
}

// Far above what a table of so many rows holds: a usual fill value, or a small negative number in uint8,
// 16, 32.
inline bool marks_or_wraps(std::int64_t value, std::int64_t rows) {
  constexpr std::int64_t kFills[] = {99, 999, 9999, 99999, 999999, 255, 32767, 65535, 2147483647, 4294967295};
  constexpr std::int64_t kBelow = 16;
  constexpr std::int64_t kUnsigned[] = {std::int64_t{1} << 8, std::int64_t{1} << 16, std::int64_t{1} << 32};
  if (std::ranges::find(kFills, value) != std::end(kFills)) return true;
  return std::ranges::any_of(
      kUnsigned, [&](std::int64_t all) { return value < all && value >= all - kBelow && rows <= all / 2; });
}

// What x86's casts to integers make of NaN and Inf.
inline constexpr std::int64_t kNanAsInt64 = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kNanAsInt32 = std::numeric_limits<std::int32_t>::min();

inline bool is_cast_of_nan(std::int64_t value) { return value == kNanAsInt64 || value == kNanAsInt32; }

}  // namespace trapline::diagnose
