// What others wrote: of the wrong type is as if it were not there, and a value survives the way there and
// back.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "jsonio/access.hpp"
#include "jsonio/scalar.hpp"

namespace trapline::jsonio {
namespace {

using nlohmann::json;

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();

TEST(Access, WhatIsOfAnotherTypeIsNotThere) {
  const json object = {{"text", 3}, {"number", "3"}, {"flag", 1}, {"list", {1, "x"}}, {"none", nullptr}};
  EXPECT_EQ(text(object, "text"), "");
  EXPECT_FALSE(integer(object, "number"));
  EXPECT_FALSE(boolean(object, "flag"));
  EXPECT_TRUE(integers(object, "list").empty());
  EXPECT_TRUE(texts(object, "list") == std::vector<std::string>{"x"});
  EXPECT_EQ(member(object, "none"), nullptr);
  EXPECT_EQ(object_member(object, "text"), nullptr);
  for (const json& other : {json(3), json(), json::array({1})}) {
    EXPECT_EQ(member(other, "text"), nullptr);
    EXPECT_EQ(text(other, "text"), "");
  }
}

TEST(Access, WhatIsThereIsRead) {
  const json object = {
      {"text", "a"}, {"number", -3}, {"flag", true}, {"list", {1, 2}}, {"inner", {{"x", 1}}}};
  EXPECT_EQ(text(object, "text"), "a");
  EXPECT_EQ(integer(object, "number"), -3);
  EXPECT_EQ(boolean(object, "flag"), true);
  EXPECT_EQ(integers(object, "list"), (std::vector<std::int64_t>{1, 2}));
  ASSERT_NE(object_member(object, "inner"), nullptr);
  EXPECT_EQ(integer(*object_member(object, "inner"), "x"), 1);
}

TEST(Access, IsBounded) {
  const json object = {{"text", std::string(kMaxText + 1, 'x')},
                       {"long", std::vector<int>(kMaxItems + 1, 1)},
                       {"full", std::vector<int>(kMaxItems, 1)},
                       {"beyond", std::uint64_t{kMax} + 1}};
  EXPECT_EQ(text(object, "text").size(), kMaxText);
  EXPECT_TRUE(integers(object, "long").empty());
  EXPECT_EQ(integers(object, "full").size(), kMaxItems);
  std::size_t seen = 0;
  each(object, "long", [&](const json&) { ++seen; });
  EXPECT_EQ(seen, kMaxItems);
  EXPECT_FALSE(integer(object, "beyond"));
}

TEST(ScalarJson, ComesBackAsItWas) {
  constexpr std::int64_t kExactly = std::int64_t{1} << 53U;
  const double inf = std::numeric_limits<double>::infinity();
  for (const Scalar& value : {Scalar(kExactly), Scalar(kExactly + 1), Scalar(kMax),
                              Scalar(std::numeric_limits<std::int64_t>::min()), Scalar(0.25), Scalar(-inf)}) {
    EXPECT_EQ(to_scalar(json::parse(to_json(value).dump())), value) << to_text(value);
  }
  const auto nan = to_scalar(to_json(Scalar(std::nan(""))));
  ASSERT_TRUE(nan);
  EXPECT_TRUE(std::isnan(as_double(*nan)));
  EXPECT_TRUE(to_json(Scalar(kExactly)).is_number_integer());
  EXPECT_TRUE(to_json(Scalar(kExactly + 1)).is_string());
}

TEST(ScalarJson, IsANumberOrTheTextOfOne) {
  for (const json& other : {json(), json("x"), json("12x"), json(""), json(true), json::array()}) {
    EXPECT_FALSE(to_scalar(other)) << other.dump();
  }
  EXPECT_EQ(to_scalar("1.5"), Scalar(1.5));
}

}  // namespace
}  // namespace trapline::jsonio
