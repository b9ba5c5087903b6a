// The scans against the scalar reference, over random views and every instruction set of this machine.
// TRAPLINE_TEST_SEED and TRAPLINE_TEST_COUNT in the environment make long runs of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "checks/reference.hpp"
#include "checks/scan.hpp"
#include "instruction_sets.hpp"
#include "random_view.hpp"

namespace trapline {
namespace {

using testing::between;
using testing::one_of;
using testing::Random;
using testing::RandomView;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Runs every scan with one instruction set.
class Differential : public testing::WithEveryInstructionSet {
 protected:
  const std::uint64_t seed_ = from_environment("TRAPLINE_TEST_SEED", 1);
  const std::uint64_t count_ = from_environment("TRAPLINE_TEST_COUNT", 1500);
};

::testing::AssertionResult same(const IntScan& got, const IntScan& want) {
  if (got == want) return ::testing::AssertionSuccess();
  const auto text = [](const IntScan& s) {
    return ::testing::Message() << "bad " << s.bad << " of " << s.total << " first " << s.first << " value "
                                << s.value << " min " << s.min << " max " << s.max << " reason "
                                << int(s.reason);
  };
  return ::testing::AssertionFailure() << text(got) << ", not " << text(want);
}

// The same number, or both NaN; zeros of different sign differ.
bool same_number(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::isnan(a) && std::isnan(b)
                                        : std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

::testing::AssertionResult same(const FloatScan& got, const FloatScan& want) {
  if (got.bad == want.bad && got.total == want.total && got.first == want.first &&
      got.reason == want.reason && same_number(got.value, want.value) && same_number(got.min, want.min) &&
      same_number(got.max, want.max)) {
    return ::testing::AssertionSuccess();
  }
  const auto text = [](const FloatScan& s) {
    return ::testing::Message() << "bad " << s.bad << " of " << s.total << " first " << s.first << " value "
                                << s.value << " min " << s.min << " max " << s.max << " reason "
                                << int(s.reason);
  };
  return ::testing::AssertionFailure() << text(got) << ", not " << text(want);
}

// How many elements of a view are bad: mostly none or one, sometimes all.
struct Dose {
  std::int64_t in;  // one in so many; 0: none
  explicit Dose(Random& random) : in(one_of<std::int64_t>(random, {0, 0, 1, 10, 5000, 50000})) {}
  bool now(Random& random) const { return in > 0 && between(random, 1, in) == 1; }
};

TEST_P(Differential, Integers) {
  Random random(seed_);
  for (std::uint64_t round = 0; round < count_; ++round) {
    const auto dtype = static_cast<DType>(between(random, 0, 5));
    RandomView tensor(random, dtype);
    const std::int64_t n =
        one_of<std::int64_t>(random, {0, 1, 2, 10, 100, 127, 128, 255, 256, 32768, 50257, kMax});
    const std::int64_t lo = one_of<std::int64_t>(random, {0, 0, -n, -128, -32768, kMin, 5});
    std::optional<std::int64_t> also;
    if (between(random, 0, 1) == 0) {
      also = one_of<std::int64_t>(random, {-100, -1, 255, 0, n, 3, kMin, kMax, std::int64_t{1} << 40});
    }
    const Dose dose(random);
    const std::uint64_t gap = dtype == DType::kBool        ? 2
                              : between(random, 0, 1) == 0 ? 0x8080808080808080u
                                                           : ~0ull / 3;
    tensor.fill(gap, [&] {
      std::int64_t value = lo < n ? between(random, lo, n - 1) : 0;
      if (also && between(random, 0, 20) == 0) value = *also;
      if (dose.now(random))
        value = one_of<std::int64_t>(random, {lo - (lo > kMin), n, -1, -100, 127, kMin, kMax});
      return static_cast<std::uint64_t>(value);
    });
    const TensorView view = tensor.view();
    ASSERT_TRUE(same(scan_index(view, lo, n, also), reference::scan_index(view, lo, n, also)))
        << "seed " << seed_ << " round " << round << ": " << tensor.describe() << " in [" << lo << ", " << n
        << ") or " << also.value_or(lo);
    ASSERT_TRUE(same(scan_non_negative(view), reference::scan_non_negative(view))) << tensor.describe();
    ASSERT_TRUE(same(scan_interval(view, 0, 1), reference::scan_interval(view, 0, 1))) << tensor.describe();
    ASSERT_TRUE(same(scan_finite(view), reference::scan_finite(view))) << tensor.describe();
    ASSERT_TRUE(same(scan_probability_rows(view), reference::scan_probability_rows(view)))
        << tensor.describe();
  }
}

TEST_P(Differential, Offsets) {
  Random random(seed_);
  for (std::uint64_t round = 0; round < count_; ++round) {
    RandomView tensor(random, one_of(random, {DType::kInt32, DType::kInt64, DType::kInt16}));
    const Dose dose(random);
    std::int64_t next = between(random, 0, 30) == 0 ? 1 : 0;
    tensor.fill(~0ull, [&] {
      const std::int64_t value =
          dose.now(random) ? one_of<std::int64_t>(random, {-1, next - 1, kMax, 0}) : next;
      next += between(random, 0, 1);
      return static_cast<std::uint64_t>(value);
    });
    const std::int64_t limit = std::max<std::int64_t>(0, next + between(random, -2, 2));
    ASSERT_TRUE(same(scan_offsets(tensor.view(), limit), reference::scan_offsets(tensor.view(), limit)))
        << "seed " << seed_ << " round " << round << ": " << tensor.describe() << " limit " << limit;
  }
}

// The bits of a number in a floating dtype, cut off rather than rounded: any bits will do here.
std::uint64_t bits_of(DType dtype, double value) {
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  switch (dtype) {
    case DType::kFloat64:
      return std::bit_cast<std::uint64_t>(value);
    case DType::kFloat32:
      return single;
    case DType::kBFloat16:
      return single >> 16;
    default:
      break;
  }
  if (value == 0) return std::signbit(value) ? 0x8000 : 0;
  int exponent = 0;
  const double part = std::frexp(std::fabs(value), &exponent);  // [0.5, 1) * 2^exponent
  const int biased = exponent + 14;
  if (biased < 1 || biased > 30) return biased < 1 ? 1 : 0x7BFF;  // least subnormal, greatest finite
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(part * 2 - 1, 10));
  return (std::signbit(value) ? 0x8000u : 0u) | (static_cast<std::uint64_t>(biased) << 10) | mantissa;
}

// Zeros, subnormals, infinities, quiet and signalling NaN with either sign, and the numbers around 1.
std::uint64_t odd_bits(Random& random, DType dtype) {
  const int mantissa = dtype == DType::kFloat64   ? 52
                       : dtype == DType::kFloat32 ? 23
                       : dtype == DType::kFloat16 ? 10
                                                  : 7;
  const int width = static_cast<int>(size_of(dtype)) * 8;
  const std::uint64_t sign = between(random, 0, 1) == 0 ? 0 : std::uint64_t{1} << (width - 1);
  const std::uint64_t infinity = ((std::uint64_t{1} << (width - 1)) - 1) >> mantissa << mantissa;
  const std::uint64_t one = bits_of(dtype, 1);
  return sign | one_of<std::uint64_t>(
                    random, {0, 1, infinity, infinity | 1, infinity | (infinity >> 1), infinity - 1, one,
                             one + 1, one - 1, (std::uint64_t{1} << mantissa) - 1});
}

TEST_P(Differential, Numbers) {
  Random random(seed_);
  for (std::uint64_t round = 0; round < count_; ++round) {
    const auto dtype = static_cast<DType>(between(random, 6, 9));
    RandomView tensor(random, dtype);
    const Dose dose(random);
    const bool zeros = between(random, 0, 3) == 0;
    tensor.fill(~0ull, [&] {  // the gaps hold NaN
      if (dose.now(random)) return odd_bits(random, dtype);
      if (zeros) return bits_of(dtype, 0);
      return bits_of(dtype, std::uniform_real_distribution<double>(0, 1)(random));
    });
    const TensorView view = tensor.view();
    const double lo = one_of(random, {0.0, -0.0, -1.0, 1e-40, 0.1});
    const double hi = one_of(random, {1.0, 0.5, 1e300, std::numeric_limits<double>::infinity()});
    SCOPED_TRACE("seed " + std::to_string(seed_) + " round " + std::to_string(round) + ": " +
                 tensor.describe());
    ASSERT_TRUE(same(scan_interval(view, lo, hi), reference::scan_interval(view, lo, hi))) << lo << " " << hi;
    ASSERT_TRUE(same(scan_finite(view), reference::scan_finite(view)));
    ASSERT_TRUE(same(scan_non_negative(view), reference::scan_non_negative(view)));
    ASSERT_TRUE(same(scan_probability_rows(view), reference::scan_probability_rows(view)));
    ASSERT_TRUE(same(scan_index(view, 0, 1, {}), reference::scan_index(view, 0, 1, {})));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Differential, testing::every_instruction_set(), testing::name_of_set);

}  // namespace
}  // namespace trapline
