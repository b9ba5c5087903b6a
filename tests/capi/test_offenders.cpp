// The bad elements of an argument, one by one: mask, distinct values, harmless copy. For a violated call what
// is marked must be what trapline_check counts, and the copy must pass it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "trapline/capi.h"

namespace {

using Mask = std::vector<std::uint8_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <class T>
constexpr std::int32_t kDType = TRAPLINE_OTHER_DTYPE;
template <>
constexpr std::int32_t kDType<std::int8_t> = TRAPLINE_INT8;
template <>
constexpr std::int32_t kDType<std::int64_t> = TRAPLINE_INT64;
template <>
constexpr std::int32_t kDType<float> = TRAPLINE_FLOAT32;
template <>
constexpr std::int32_t kDType<double> = TRAPLINE_FLOAT64;
template <>
constexpr std::int32_t kDType<std::uint16_t> = TRAPLINE_FLOAT16;

// A tensor with its elements, contiguous unless strides are given.
template <class T>
struct Holder {
  std::vector<T> data;
  std::vector<std::int64_t> sizes, strides;

  Holder(std::vector<T> elements, std::vector<std::int64_t> shape, std::vector<std::int64_t> steps = {})
      : data(std::move(elements)), sizes(std::move(shape)), strides(std::move(steps)) {
    if (!strides.empty() || sizes.empty()) return;
    strides.assign(sizes.size(), 1);
    for (std::size_t d = sizes.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * sizes[d];
  }
  trapline_tensor tensor() const {
    return {data.data(), sizes.data(), strides.data(), static_cast<std::int32_t>(sizes.size()), kDType<T>};
  }
  std::size_t numel() const {
    std::size_t count = 1;
    for (const std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
    return count;
  }
};

trapline_scan range(std::int64_t lo, std::int64_t hi) {
  trapline_scan scan{};
  scan.lo = lo;
  scan.hi = hi;
  scan.list_position = -1;
  return scan;
}

// Empty: not applicable.
template <class T>
Mask marked(std::int32_t predicate, const trapline_scan& scan, const Holder<T>& holder,
            int kind = TRAPLINE_OFFENDERS_ELEMENTS) {
  Mask mask(holder.numel(), 7);
  const trapline_tensor tensor = holder.tensor();
  if (trapline_offenders(predicate, &scan, &tensor, kind, mask.data()) != TRAPLINE_OK) return {};
  return mask;
}

template <class T>
std::vector<T> healed(std::int32_t predicate, const trapline_scan& scan, const Holder<T>& holder) {
  std::vector<T> copy(holder.numel());
  const trapline_tensor tensor = holder.tensor();
  if (trapline_heal_copy(predicate, &scan, &tensor, copy.data()) != TRAPLINE_OK) return {};
  return copy;
}

TEST(Offenders, RangesWithWhatIsAllowedBesides) {
  trapline_scan scan = range(0, 3);
  scan.has_also = 1;
  scan.also = -100;
  const Holder<std::int64_t> labels({0, -100, 7, -1, 2}, {5});
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_INDEX, scan, labels), (Mask{0, 0, 1, 1, 0}));
  EXPECT_EQ(healed(TRAPLINE_PREDICATE_INDEX, scan, labels), (std::vector<std::int64_t>{0, -100, 2, 0, 2}));
  // -1 ends a row.
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_ENDED_INDEX, range(0, 3), labels), (Mask{0, 1, 1, 0, 0}));
}

TEST(Offenders, ABoundBeyondTheDtypeIsNoOverflow) {
  const Holder<std::int8_t> index({-128, 127, -3}, {3});
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_WRAPPED_INDEX, range(-2, 1000), index), (Mask{1, 0, 1}));
  EXPECT_EQ(healed(TRAPLINE_PREDICATE_WRAPPED_INDEX, range(-2, 1000), index),
            (std::vector<std::int8_t>{-2, 127, -2}));
}

TEST(Offenders, StridesAreRowMajorInTheAnswer) {
  const Holder<std::int64_t> transposed({1, 9, 2, 3, -1, 4}, {2, 3}, {1, 2});  // [[1, 2, -1], [9, 3, 4]]
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_INDEX, range(0, 5), transposed), (Mask{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(healed(TRAPLINE_PREDICATE_INDEX, range(0, 5), transposed),
            (std::vector<std::int64_t>{1, 2, 0, 4, 3, 4}));
  const Holder<std::int64_t> repeated({8}, {3}, {0});
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_INDEX, range(0, 5), repeated), (Mask{1, 1, 1}));
}

TEST(Offenders, NumbersAndTheirNaN) {
  const Holder<float> numbers({0.25F, -0.5F, static_cast<float>(kNan), static_cast<float>(kInf), 1.0F}, {5});
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_UNIT_INTERVAL, range(0, 1), numbers), (Mask{0, 1, 1, 1, 0}));
  EXPECT_EQ(healed(TRAPLINE_PREDICATE_UNIT_INTERVAL, range(0, 1), numbers),
            (std::vector<float>{0.25F, 0, 0, 1, 1}));
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_NON_NEGATIVE, range(0, 0), numbers), (Mask{0, 1, 1, 0, 0}));
  const std::vector<float> rates = healed(TRAPLINE_PREDICATE_NON_NEGATIVE, range(0, 0), numbers);
  EXPECT_EQ(rates, (std::vector<float>{0.25F, 0, 0, static_cast<float>(kInf), 1}));  // poisson takes it
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_FINITE_TO_INTEGER, range(0, 0), numbers), (Mask{0, 0, 1, 1, 0}));
  EXPECT_EQ(healed(TRAPLINE_PREDICATE_FINITE_TO_INTEGER, range(0, 0), numbers),
            (std::vector<float>{0.25F, -0.5F, 0, 0, 1}));
  const Holder<std::uint16_t> halves({0x3C00, 0xBC00, 0x7E00, 0x7C00}, {4});  // 1, -1, NaN, Inf
  EXPECT_EQ(healed(TRAPLINE_PREDICATE_UNIT_INTERVAL, range(0, 1), halves),
            (std::vector<std::uint16_t>{0x3C00, 0, 0, 0x3C00}));
  const Holder<std::int64_t> counts({3, -1, 0}, {3});
  EXPECT_EQ(healed(TRAPLINE_PREDICATE_NON_NEGATIVE, range(0, INT64_MAX), counts),
            (std::vector<std::int64_t>{3, 0, 0}));
}

TEST(Offenders, RowsOfProbabilities) {
  const Holder<double> rows({0.2, 0.8, kNan, 1.0, 0.0, 0.0}, {3, 2});
  trapline_scan scan = range(0, 0);
  scan.reason = TRAPLINE_REASON_NAN;
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_PROBABILITY_ROWS, scan, rows), (Mask{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(marked(TRAPLINE_PREDICATE_PROBABILITY_ROWS, scan, rows, TRAPLINE_OFFENDERS_HEALED),
            (Mask{0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(healed(TRAPLINE_PREDICATE_PROBABILITY_ROWS, scan, rows),
            (std::vector<double>{0.2, 0.8, 1, 1, 1, 1}));
  // A row that sums to nothing is bad as a whole: no element is bad by itself.
  scan.reason = TRAPLINE_REASON_ZERO_SUM;
  EXPECT_TRUE(marked(TRAPLINE_PREDICATE_PROBABILITY_ROWS, scan, rows).empty());
  const Holder<double> single({0.0}, {});
  EXPECT_EQ(healed(TRAPLINE_PREDICATE_PROBABILITY_ROWS, scan, single), (std::vector<double>{1}));
}

TEST(Offenders, WhatIsBadAsAWholeBecomesZeros) {
  const Holder<std::int64_t> offsets({0, 9, 3}, {3});
  for (const std::int32_t predicate :
       {TRAPLINE_PREDICATE_OFFSETS, TRAPLINE_PREDICATE_MASK_COUNT, TRAPLINE_PREDICATE_ENDS}) {
    const bool tells = predicate == TRAPLINE_PREDICATE_ENDS;  // each end has a range, too
    EXPECT_EQ(marked(predicate, range(0, 5), offsets), tells ? (Mask{0, 1, 0}) : Mask{});
    EXPECT_EQ(marked(predicate, range(0, 5), offsets, TRAPLINE_OFFENDERS_HEALED), (Mask{1, 1, 1}));
    EXPECT_EQ(healed(predicate, range(0, 5), offsets), (std::vector<std::int64_t>{0, 0, 0}));
  }
}

TEST(Offenders, WhatHasNoHarmlessCopy) {
  const Holder<std::int64_t> index({1, 2}, {2});
  EXPECT_TRUE(healed(TRAPLINE_PREDICATE_INDEX, range(0, 0), index).empty());
  for (const std::int32_t predicate :
       {TRAPLINE_PREDICATE_COUNTS, TRAPLINE_PREDICATE_LENGTHS, TRAPLINE_PREDICATE_COMPRESSED}) {
    EXPECT_TRUE(healed(predicate, range(0, 1), index).empty());
    // Of a sum the bound itself is a good count.
    const bool sum = predicate != TRAPLINE_PREDICATE_COMPRESSED;
    EXPECT_EQ(marked(predicate, range(0, 1), index), (Mask{sum ? std::uint8_t{0} : std::uint8_t{1}, 1}));
  }
  for (const std::int32_t predicate : {-1, 200, 999}) {
    EXPECT_TRUE(healed(predicate, range(0, 2), index).empty());
    EXPECT_TRUE(marked(predicate, range(0, 2), index).empty());
  }
  const Holder<float> numbers({1, 2}, {2});
  EXPECT_TRUE(healed(TRAPLINE_PREDICATE_INDEX, range(0, 2), numbers).empty());
  trapline_tensor unread = index.tensor();
  unread.data = nullptr;
  Mask mask(2);
  const trapline_scan scan = range(0, 2);
  EXPECT_EQ(trapline_offenders(TRAPLINE_PREDICATE_INDEX, &scan, &unread, 0, mask.data()),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(trapline_offenders(TRAPLINE_PREDICATE_INDEX, &scan, nullptr, 0, mask.data()),
            TRAPLINE_NOT_APPLICABLE);
  const trapline_tensor tensor = index.tensor();
  EXPECT_EQ(trapline_offenders(TRAPLINE_PREDICATE_INDEX, nullptr, &tensor, 0, mask.data()),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(trapline_offenders(TRAPLINE_PREDICATE_INDEX, &scan, &tensor, 2, mask.data()),
            TRAPLINE_NOT_APPLICABLE);
}

TEST(Offenders, NoElementsAreNoTrouble) {
  const Holder<std::int64_t> none({}, {2, 0});
  const trapline_tensor tensor = none.tensor();
  const trapline_scan scan = range(0, 2);
  EXPECT_EQ(trapline_offenders(TRAPLINE_PREDICATE_INDEX, &scan, &tensor, 0, nullptr), TRAPLINE_OK);
  EXPECT_EQ(trapline_heal_copy(TRAPLINE_PREDICATE_INDEX, &scan, &tensor, nullptr), TRAPLINE_OK);
  EXPECT_EQ(trapline_heal_copy(TRAPLINE_PREDICATE_OFFSETS, &scan, &tensor, nullptr), TRAPLINE_OK);
}

TEST(BadValues, MostFrequentFirst) {
  trapline_scan scan = range(0, 3);
  scan.bad = 6;
  trapline_value values[16];
  const Holder<std::int64_t> ids({9, 1, -1, 9, 0, 7, -1, 9}, {8});
  const trapline_tensor tensor = ids.tensor();
  ASSERT_EQ(trapline_bad_values(TRAPLINE_PREDICATE_INDEX, &scan, &tensor, values, 16), 3);
  EXPECT_EQ(values[0].ivalue, 9);
  EXPECT_EQ(values[0].count, 3);
  EXPECT_EQ(values[1].ivalue, -1);
  EXPECT_EQ(values[1].count, 2);
  EXPECT_EQ(values[2].ivalue, 7);
  EXPECT_EQ(trapline_bad_values(TRAPLINE_PREDICATE_INDEX, &scan, &tensor, values, 2), 2);
  scan.bad = 5;  // the scan counts something else
  EXPECT_EQ(trapline_bad_values(TRAPLINE_PREDICATE_INDEX, &scan, &tensor, values, 16), 0);
}

TEST(BadValues, NaNIsOneValue) {
  trapline_scan scan = range(0, 1);
  scan.bad = 4;
  scan.is_float = 1;
  trapline_value values[16];
  const Holder<double> numbers({kNan, 0.5, -2.0, -kNan, 3.0}, {5});
  const trapline_tensor tensor = numbers.tensor();
  ASSERT_EQ(trapline_bad_values(TRAPLINE_PREDICATE_UNIT_INTERVAL, &scan, &tensor, values, 16), 3);
  EXPECT_TRUE(std::isnan(values[0].fvalue));
  EXPECT_EQ(values[0].count, 2);
  EXPECT_EQ(values[1].fvalue, -2.0);
  EXPECT_EQ(values[2].fvalue, 3.0);
}

TEST(BadValues, OneIsTheScansOwn) {
  trapline_scan scan = range(0, 3);
  scan.bad = 1;
  scan.ivalue = 12;
  trapline_value value;
  ASSERT_EQ(trapline_bad_values(TRAPLINE_PREDICATE_INDEX, &scan, nullptr, &value, 1), 1);
  EXPECT_EQ(value.ivalue, 12);
  EXPECT_EQ(value.count, 1);
}

}  // namespace
