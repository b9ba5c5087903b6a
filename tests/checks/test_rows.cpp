// The scans that judge an element together with those before it in its row.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "checks/element.hpp"
#include "checks/scan.hpp"

namespace trapline {
namespace {

static_assert(element::end(0, true, 9, 5) == Reason::kNone);
static_assert(element::end(-1, true, 0, 5) == Reason::kBelow);
static_assert(element::end(3, false, 4, 5) == Reason::kNotAscending);
static_assert(element::end(6, false, 4, 5) == Reason::kAbove);
static_assert(element::count(3, 3) == Reason::kNone);
static_assert(element::count(4, 3) == Reason::kTooMany);
static_assert(element::count(-1, 3) == Reason::kBelow);

// A contiguous matrix; transposed: the same elements in the other order.
struct Matrix {
  std::array<std::int64_t, 2> sizes, strides;
  std::vector<std::int64_t> data;

  Matrix(std::int64_t rows, std::int64_t columns, std::vector<std::int64_t> values)
      : sizes{rows, columns}, strides{columns, 1}, data(std::move(values)) {}
  TensorView view() const { return {data.data(), DType::kInt64, sizes, strides}; }
};

void expect(const IntScan& scan, std::int64_t bad, std::int64_t first, std::int64_t value, Reason reason) {
  EXPECT_EQ(scan.bad, bad);
  EXPECT_EQ(scan.first, first);
  EXPECT_EQ(scan.value, value);
  EXPECT_EQ(scan.reason, reason);
}

TEST(RowScans, WhatFollowsTheEndOfARowIsNotLookedAt) {
  const Matrix labels(2, 3, {1, -1, 99, 0, 3, -2});
  const IntScan scan = scan_ended_index(labels.view(), 3);
  expect(scan, 2, 4, 3, Reason::kAbove);
  EXPECT_EQ(scan.total, 4);
  EXPECT_EQ(scan.min, -2);
  EXPECT_EQ(scan.max, 3);
}

TEST(RowScans, EndsAscendInEachRowAlone) {
  const Matrix ends(2, 3, {1, 3, 5, 0, 4, 2});
  expect(scan_ends(ends.view(), 5), 1, 5, 2, Reason::kNotAscending);
  expect(scan_ends(ends.view(), 4), 2, 2, 5, Reason::kAbove);
}

// As PyTorch's own validation of compressed sparse tensors: `crow[..., 0] == 0`, `crow[..., -1] == nnz`,
// `0 <= crow[..., 1:] - crow[..., :-1] <= ncols`.
TEST(RowScans, CompressedIndicesGoFromZeroToTheirEnd) {
  const auto scan = [](std::vector<std::int64_t> row, std::int64_t nnz, std::int64_t width) {
    const auto size = static_cast<std::int64_t>(row.size());
    return scan_compressed(Matrix(1, size, std::move(row)).view(), nnz, width);
  };
  expect(scan({0, 2, 2, 5}, 5, 3), 0, -1, 0, Reason::kNone);
  expect(scan({0, 0}, 0, 0), 0, -1, 0, Reason::kNone);
  expect(scan({1, 2, 2}, 2, 3), 1, 0, 1, Reason::kFirstNotZero);
  expect(scan({0, 2, 1, 2}, 2, 3), 1, 2, 1, Reason::kNotAscending);
  expect(scan({0, 6, 6}, 5, 9), 2, 1, 6, Reason::kAbove);
  expect(scan({0, 4, 5}, 5, 3), 1, 1, 4, Reason::kTooMany);
  expect(scan({0, 1, 1}, 2, 3), 1, 2, 1, Reason::kTooFew);
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  expect(scan({0, kMin, kMax}, kMax, 3), 2, 1, kMin, Reason::kNotAscending);
  const Matrix batch(2, 3, {0, 1, 2, 1, 2, 2});
  expect(scan_compressed(batch.view(), 2, 3), 1, 3, 1, Reason::kFirstNotZero);
}

TEST(RowScans, TheFirstCountThatDoesNotFitStandsForItsRow) {
  const Matrix counts(2, 3, {2, 2, 1, 0, 1, 1});
  expect(scan_counts(counts.view(), 5, Sum::kAtMost), 0, -1, 0, Reason::kNone);
  expect(scan_counts(counts.view(), 3, Sum::kAtMost), 1, 1, 2, Reason::kTooMany);
  expect(scan_counts(counts.view(), 5, Sum::kExactly), 1, 5, 1, Reason::kTooFew);
  const Matrix negative(1, 3, {-4, 9, -1});
  expect(scan_counts(negative.view(), 5, Sum::kExactly), 2, 0, -4, Reason::kBelow);
}

TEST(RowScans, SumsDoNotOverflow) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const Matrix counts(1, 3, {kMax, kMax, kMax});
  expect(scan_counts(counts.view(), kMax, Sum::kAtMost), 1, 1, kMax, Reason::kTooMany);
}

TEST(RowScans, TheMasksOfBothWaysAgree) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto size = static_cast<std::int64_t>(random() % 70);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(2 * size + 1));
    for (auto& byte : bytes) byte = random() % 3 == 0 ? static_cast<std::uint8_t>(1 + random() % 255) : 0;
    const auto limit = static_cast<std::int64_t>(random() % 30);
    const std::array<std::int64_t, 1> sizes{size}, every{1}, other{2};
    for (const auto& stride : {every, other}) {
      const TensorView view{bytes.data(), DType::kBool, sizes, stride};
      std::int64_t marked = 0, first = -1;
      for (std::int64_t i = 0; i < size; ++i) {
        if (bytes[static_cast<std::size_t>(i * stride[0])] != 0 && ++marked == limit + 1) first = i;
      }
      const IntScan scan = scan_mask(view, limit);
      EXPECT_EQ(scan.bad, std::max<std::int64_t>(0, marked - limit));
      EXPECT_EQ(scan.first, first);
      EXPECT_EQ(scan.total, size);
      EXPECT_EQ(scan.max, marked > 0 ? 1 : 0);
      EXPECT_EQ(scan.min, size > 0 && marked == size ? 1 : 0);
    }
  }
}

TEST(RowScans, NothingIsFineInAnEmptyView) {
  const std::array<std::int64_t, 2> sizes{0, 3}, strides{3, 1};
  const TensorView empty{nullptr, DType::kInt64, sizes, strides};
  EXPECT_EQ(scan_ended_index(empty, 3).bad, 0);
  EXPECT_EQ(scan_ends(empty, 3).bad, 0);
  EXPECT_EQ(scan_counts(empty, 3, Sum::kExactly).bad, 0);
  EXPECT_EQ(scan_mask(empty, 0).bad, 0);
}

}  // namespace
}  // namespace trapline
