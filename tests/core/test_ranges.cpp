#include <gtest/gtest.h>

#include "core/ranges.hpp"

namespace trapline {
namespace {

TEST(Ranges, ThreeInARowAreARange) {
  EXPECT_EQ(ranges_text({}), "");
  EXPECT_EQ(ranges_text({4}), "4");
  EXPECT_EQ(ranges_text({0, 1}), "0, 1");
  EXPECT_EQ(ranges_text({0, 1, 2, 3, 4, 6, 7}), "0-4, 6, 7");
  EXPECT_EQ(ranges_text({0, 1, 3, 4, 5}), "0, 1, 3-5");
}

TEST(Ranges, TheRestIsCounted) {
  EXPECT_EQ(ranges_text({0, 2, 4, 6, 8, 10}, 4), "0, 2, 4, 6 and 2 more");
  EXPECT_EQ(ranges_text({0, 2, 4, 6}, 4), "0, 2, 4, 6");
}

TEST(Ranges, RanksAreNamed) {
  EXPECT_EQ(ranks_text({5}), "rank 5");
  EXPECT_EQ(ranks_text({0, 1, 2, 3, 4, 6, 7}), "ranks 0-4, 6, 7");
}

}  // namespace
}  // namespace trapline
