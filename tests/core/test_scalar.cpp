#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "core/result.hpp"
#include "core/scalar.hpp"

namespace trapline {
namespace {

TEST(Scalar, IntegersStayExact) {
  EXPECT_EQ(to_text(Scalar{std::int64_t{195}}), "195");
  EXPECT_EQ(to_text(Scalar{std::numeric_limits<std::int64_t>::min()}), "-9223372036854775808");
  EXPECT_EQ(to_text(Scalar{std::int64_t{9007199254740993}}), "9007199254740993");
}

TEST(Scalar, NumbersReadAsAPersonWouldWriteThem) {
  EXPECT_EQ(to_text(Scalar{1.5}), "1.5");
  EXPECT_EQ(to_text(Scalar{static_cast<double>(0.1F)}), "0.1");  // float32, widened
  EXPECT_EQ(to_text(Scalar{0.1}), "0.1");
  EXPECT_EQ(to_text(Scalar{std::numeric_limits<double>::quiet_NaN()}), "nan");
  EXPECT_EQ(to_text(Scalar{-std::numeric_limits<double>::infinity()}), "-inf");
}

TEST(Error, IsOneLineOfWhatWhyAndWhatToDo) {
  EXPECT_EQ((Error{"cannot read a.json", "truncated", "copy it again"}.line()),
            "cannot read a.json: truncated: copy it again");
  EXPECT_EQ((Error{"cannot read a.json", "", ""}.line()), "cannot read a.json");
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = 3;
  const Result<int> bad = Error{"no", "why", "do"};
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().why, "why");
}

}  // namespace
}  // namespace trapline
