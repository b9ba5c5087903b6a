#include <gtest/gtest.h>

#include "core/enum_set.hpp"

namespace trapline {
namespace {

enum class Fruit : std::uint8_t { kApple, kPear, kPlum = 63 };
using Basket = EnumSet<Fruit>;

TEST(EnumSet, HoldsWhatWasPutIn) {
  constexpr Basket some{Fruit::kApple, Fruit::kPlum};
  static_assert(some.has(Fruit::kApple) && some.has(Fruit::kPlum) && !some.has(Fruit::kPear));
  EXPECT_FALSE(some.empty());
  EXPECT_TRUE(Basket().empty());
}

TEST(EnumSet, AUnionHasWhatEitherHas) {
  Basket all = Fruit::kApple;
  all |= {Fruit::kPlum, Fruit::kApple};
  EXPECT_EQ(all, (Basket{Fruit::kApple, Fruit::kPlum}));
  EXPECT_EQ(all | Fruit::kPear, (Basket{Fruit::kApple, Fruit::kPear, Fruit::kPlum}));
}

}  // namespace
}  // namespace trapline
