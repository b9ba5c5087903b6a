#include "core/suggest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace trapline {
namespace {

const std::vector<std::string> kKnown = {"run", "explain", "--report", "--format"};

TEST(Suggest, FindsSlips) {
  EXPECT_EQ(nearest("rnu", kKnown), "run");
  EXPECT_EQ(nearest("rum", kKnown), "run");
  EXPECT_EQ(nearest("expain", kKnown), "explain");
  EXPECT_EQ(nearest("--fromat", kKnown), "--format");
}

TEST(Suggest, DoesNotGuessWildly) {
  EXPECT_EQ(nearest("python", kKnown), std::nullopt);
  EXPECT_EQ(nearest("", kKnown), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'x'), kKnown), std::nullopt);
}

}  // namespace
}  // namespace trapline
