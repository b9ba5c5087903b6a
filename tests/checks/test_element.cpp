#include <gtest/gtest.h>

#include <cmath>

#include "checks/element.hpp"

namespace trapline {
namespace {

// The predicates are usable at compile time: what a device compiler needs of them.
static_assert(element::index(-1, 0, 5) == Reason::kBelow);
static_assert(element::index(5, 0, 5) == Reason::kAbove);
static_assert(element::index(4, 0, 5) == Reason::kNone);
static_assert(element::interval(0.5F, 0.0F, 1.0F) == Reason::kNone);
static_assert(element::finite(std::numeric_limits<double>::infinity()) == Reason::kInf);
static_assert(element::probability(std::numeric_limits<float>::quiet_NaN()) == Reason::kNan);
static_assert(element::offset(1, true, 0, 9) == Reason::kFirstNotZero);
static_assert(element::float16_value(0x3C00) == 1.0F);
static_assert(element::bfloat16_value(0x3F80) == 1.0F);

// Every bit pattern, against the definition of the format.
template <class Value>
void expect_format(int mantissa_bits, int exponent_bits, Value&& value_of) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
    const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const double mantissa = static_cast<double>(bits & ((1U << mantissa_bits) - 1));
    const double got = static_cast<double>(value_of(static_cast<std::uint16_t>(bits)));
    if (exponent == (1 << exponent_bits) - 1) {
      ASSERT_EQ(std::isnan(got), mantissa > 0) << bits;
      if (mantissa == 0) {
        ASSERT_EQ(got, sign * HUGE_VAL) << bits;
      }
      continue;
    }
    const double significand = exponent == 0 ? mantissa : mantissa + std::ldexp(1.0, mantissa_bits);
    const double want = sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
    ASSERT_EQ(got, want) << bits;
    ASSERT_EQ(std::signbit(got), std::signbit(want)) << bits;
  }
}

TEST(Element, EveryFloat16) {
  expect_format(10, 5, [](std::uint16_t bits) { return element::float16_value(bits); });
}

TEST(Element, EveryBFloat16) {
  expect_format(7, 8, [](std::uint16_t bits) { return element::bfloat16_value(bits); });
}

}  // namespace
}  // namespace trapline
