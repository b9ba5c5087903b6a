// What the predicates mean, value by value: for the reference and for the scans alike.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "checks/reference.hpp"
#include "checks/scan.hpp"

namespace trapline {
namespace {

using Ints = std::vector<std::int64_t>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Data with its shape; row-major unless strides are given.
template <class T>
struct Tensor {
  std::vector<T> data;
  Ints sizes, strides;
  DType dtype;

  Tensor(std::vector<T> values, Ints shape, DType type)
      : data(std::move(values)), sizes(std::move(shape)), dtype(type) {
    strides.resize(sizes.size());
    std::int64_t stride = 1;
    for (std::size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
  }
  TensorView view() const { return {data.data(), dtype, sizes, strides}; }
};

Tensor<std::int64_t> ints(Ints values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return {std::move(values), {n}, DType::kInt64};
}
Tensor<float> floats(std::vector<float> values, Ints shape) {
  return {std::move(values), std::move(shape), DType::kFloat32};
}
Tensor<float> floats(std::vector<float> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return floats(std::move(values), {n});
}

void expect(const IntScan& want, const TensorView& view, std::int64_t lo, std::int64_t hi,
            std::optional<std::int64_t> also = {}) {
  EXPECT_EQ(scan_index(view, lo, hi, also), want);
  EXPECT_EQ(reference::scan_index(view, lo, hi, also), want);
}

TEST(ScanIndex, FirstBadElementItsValueCountAndRange) {
  const auto target = ints({3, 195, 0, -1, 195, 7});
  expect({3, 6, 1, 195, -1, 195, Reason::kAbove}, target.view(), 0, 195);
  expect({2, 6, 1, 195, -1, 195, Reason::kAbove}, target.view(), 0, 195, -1);
  expect({1, 6, 3, -1, -1, 195, Reason::kBelow}, target.view(), 0, 196);
  expect({0, 6, -1, 0, -1, 195, Reason::kNone}, target.view(), -196, 196);
}

TEST(ScanIndex, EndsOfInt64) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const auto view = ints({0, kMax, kMin});
  expect({2, 3, 1, kMax, kMin, kMax, Reason::kAbove}, view.view(), 0, 10);
  expect({1, 3, 1, kMax, kMin, kMax, Reason::kAbove}, view.view(), kMin, kMax);
  expect({0, 3, -1, 0, kMin, kMax, Reason::kNone}, view.view(), kMin, kMax, kMax);
}

TEST(ScanIndex, EmptyRangeHoldsNothing) {
  expect({2, 2, 0, 0, 0, 1, Reason::kAbove}, ints({0, 1}).view(), 0, 0);
  expect({1, 2, 1, 1, 0, 1, Reason::kAbove}, ints({0, 1}).view(), 0, 0, 0);
}

TEST(ScanIndex, NoElementsAndZeroDim) {
  expect({}, ints({}).view(), 0, 0);
  const Tensor<std::int64_t> scalar({7}, {}, DType::kInt64);
  expect({1, 1, 0, 7, 7, 7, Reason::kAbove}, scalar.view(), 0, 7);
}

TEST(ScanIndex, PositionsCountInTheViewsOwnShape) {
  Tensor<std::int64_t> t({0, 1, 2, 3, 4, 5}, {3, 2}, DType::kInt64);
  t.strides = {1, 3};  // the transpose of [2, 3]: 0 3 / 1 4 / 2 5
  expect({1, 6, 5, 5, 0, 5, Reason::kAbove}, t.view(), 0, 5);
  expect({3, 6, 1, 3, 0, 5, Reason::kAbove}, t.view(), 0, 3);
}

TEST(ScanIndex, ExpandedElementCountsEachTime) {
  Tensor<std::int64_t> t({9}, {1000}, DType::kInt64);
  t.strides = {0};
  expect({1000, 1000, 0, 9, 9, 9, Reason::kAbove}, t.view(), 0, 9);
  expect({0, 1000, -1, 0, 9, 9, Reason::kNone}, t.view(), 0, 10);
}

TEST(ScanIndex, NarrowTypesAgainstWideBounds) {
  std::vector<std::uint8_t> bytes(300, 7);
  bytes[299] = 255;
  const Tensor<std::uint8_t> t(bytes, {300}, DType::kUInt8);
  expect({1, 300, 299, 255, 7, 255, Reason::kAbove}, t.view(), 0, 10);
  expect({0, 300, -1, 0, 7, 255, Reason::kNone}, t.view(), 0, 10, 255);
  expect({1, 300, 299, 255, 7, 255, Reason::kAbove}, t.view(), 0, 10, -1);  // -1 is not 255
  expect({0, 300, -1, 0, 7, 255, Reason::kNone}, t.view(), 0, 50257);
}

TEST(ScanIndex, BoolCountsAsZeroAndOne) {
  const Tensor<std::uint8_t> t({0, 1, 2}, {3}, DType::kBool);
  expect({2, 3, 1, 1, 0, 1, Reason::kAbove}, t.view(), 0, 1);
}

TEST(ScanIndex, LastElementOfALongTensor) {
  Ints values(100'001, 5);
  values.back() = -100;
  const auto t = ints(values);
  expect({1, 100'001, 100'000, -100, -100, 5, Reason::kBelow}, t.view(), 0, 10);
  expect({0, 100'001, -1, 0, -100, 5, Reason::kNone}, t.view(), 0, 10, -100);
}

TEST(ScanOffsets, FirstAscendingLimit) {
  const auto check = [](const IntScan& want, const Ints& values, std::int64_t limit) {
    const auto t = ints(values);
    EXPECT_EQ(scan_offsets(t.view(), limit), want);
    EXPECT_EQ(reference::scan_offsets(t.view(), limit), want);
  };
  check({0, 4, -1, 0, 0, 5, Reason::kNone}, {0, 2, 2, 5}, 5);
  check({1, 4, 3, 5, 0, 5, Reason::kAbove}, {0, 2, 2, 5}, 4);
  check({1, 4, 2, 1, 0, 5, Reason::kNotAscending}, {0, 2, 1, 5}, 5);
  check({1, 2, 0, 1, 1, 2, Reason::kFirstNotZero}, {1, 2}, 5);
  check({}, {}, 5);
}

template <class Scan>
void expect(const Scan& got, std::int64_t bad, std::int64_t first, float value, Reason reason) {
  EXPECT_EQ(got.bad, bad);
  EXPECT_EQ(got.first, first);
  EXPECT_EQ(got.reason, reason);
  if (std::isnan(value)) {
    EXPECT_TRUE(std::isnan(got.value));
  } else {
    EXPECT_EQ(got.value, static_cast<double>(value));
  }
}

TEST(ScanInterval, NanIsToldFromBelowAndAbove) {
  expect(scan_interval(floats({0, 1, 0.5F}).view(), 0, 1), 0, -1, 0, Reason::kNone);
  expect(scan_interval(floats({0, 1.5F, -1}).view(), 0, 1), 2, 1, 1.5F, Reason::kAbove);
  expect(scan_interval(floats({-0.25F, kNan}).view(), 0, 1), 2, 0, -0.25F, Reason::kBelow);
  expect(scan_interval(floats({0, kNan, 2}).view(), 0, 1), 2, 1, kNan, Reason::kNan);
}

TEST(ScanInterval, RangeLeavesNanOut) {
  const FloatScan scan = scan_interval(floats({kNan, 3, -2, kNan}).view(), 0, 1);
  EXPECT_EQ(scan.min, -2);
  EXPECT_EQ(scan.max, 3);
  const FloatScan none = scan_interval(floats({kNan, kNan}).view(), 0, 1);
  EXPECT_TRUE(std::isnan(none.min));
  EXPECT_TRUE(std::isnan(none.max));
}

TEST(ScanFinite, NanAndInf) {
  expect(scan_finite(floats({0, -1e38F}).view()), 0, -1, 0, Reason::kNone);
  expect(scan_finite(floats({0, -kInf, kNan}).view()), 2, 1, -kInf, Reason::kInf);
  expect(scan_finite(floats({kNan, kInf}).view()), 2, 0, kNan, Reason::kNan);
}

TEST(ScanNonNegative, FloatsAndIntegers) {
  expect(scan_non_negative(floats({0, -0.0F, kInf}).view()), 0, -1, 0, Reason::kNone);
  expect(scan_non_negative(floats({1, -1}).view()), 1, 1, -1, Reason::kNegative);
  expect(scan_non_negative(ints({1, std::numeric_limits<std::int64_t>::max(), -2}).view()), 1, 2, -2,
         Reason::kNegative);
}

TEST(ScanProbabilityRows, EachRowIsFiniteNonNegativeAndHasASum) {
  const auto scan = [](const Tensor<float>& t) { return scan_probability_rows(t.view()); };
  expect(scan(floats({0, 1, 0.5F, 0}, {2, 2})), 0, -1, 0, Reason::kNone);
  expect(scan(floats({0, 1, 0, 0}, {2, 2})), 1, 2, 0, Reason::kZeroSum);
  expect(scan(floats({0, 1, 0, kNan}, {2, 2})), 1, 3, kNan, Reason::kNan);
  expect(scan(floats({0, 1, kInf, 0}, {2, 2})), 1, 2, kInf, Reason::kInf);
  expect(scan(floats({0, 1, 2, -1}, {2, 2})), 1, 3, -1, Reason::kNegative);
  expect(scan(floats({0, 0, 0})), 1, 0, 0, Reason::kZeroSum);
  expect(scan(floats({0, 1e-45F, 0})), 0, -1, 0, Reason::kNone);  // the sum of a subnormal is no zero
  expect(scan(floats({0, 0, 0, -1, kNan, 0}, {3, 2})), 3, 0, 0, Reason::kZeroSum);
  expect(scan(floats({1}, {})), 0, -1, 0, Reason::kNone);
  expect(scan(floats({}, {0, 4})), 0, -1, 0, Reason::kNone);
}

}  // namespace
}  // namespace trapline
