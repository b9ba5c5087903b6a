// Data at rest through the C face, and that nothing which is no tally can break it.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trapline/capi.h"

namespace {

using nlohmann::json;

struct Labels {
  std::vector<std::int64_t> values;
  std::int64_t size[1];
  std::int64_t stride[1] = {1};
  explicit Labels(std::vector<std::int64_t> list)
      : values(std::move(list)), size{static_cast<std::int64_t>(values.size())} {}
  trapline_tensor tensor() const { return {values.data(), size, stride, 1, TRAPLINE_INT64}; }
};

constexpr trapline_data_rule kTenClasses{TRAPLINE_DATA_LABELS, 1, 10, -100, -1};

json take(char* text) {
  json answer = json::parse(text);
  trapline_free(text);
  return answer;
}

TEST(CheckData, OneSweepTellsGoodFromBad) {
  const Labels good({0, 9, -100}), bad({0, 10, -100});
  const trapline_tensor good_tensor = good.tensor(), bad_tensor = bad.tensor();
  trapline_scan scan{};
  EXPECT_EQ(trapline_data_check(&kTenClasses, &good_tensor, &scan), TRAPLINE_OK);
  EXPECT_EQ(scan.total, 3);
  EXPECT_EQ(trapline_data_check(&kTenClasses, &bad_tensor, &scan), TRAPLINE_VIOLATED);
  EXPECT_EQ(scan.bad, 1);
  EXPECT_EQ(scan.ivalue, 10);
  EXPECT_EQ(scan.imax, 10);
}

TEST(CheckData, FloatingPointIsLookedAtForNanAndWholeNumbers) {
  const double values[] = {1, std::nan(""), 2.5};
  const std::int64_t size[] = {3}, stride[] = {1};
  const trapline_tensor tensor{values, size, stride, 1, TRAPLINE_FLOAT64};
  const trapline_data_rule finite{TRAPLINE_DATA_FINITE, 0, 0, 0, -1};
  trapline_scan scan{};
  EXPECT_EQ(trapline_data_check(&finite, &tensor, &scan), TRAPLINE_VIOLATED);
  EXPECT_EQ(scan.bad, 1);
  EXPECT_EQ(trapline_data_check(&kTenClasses, &tensor, &scan), TRAPLINE_VIOLATED);
  EXPECT_EQ(scan.bad, 2);
  const Labels integers({1});
  const trapline_tensor whole = integers.tensor();
  EXPECT_EQ(trapline_data_check(&finite, &whole, &scan), TRAPLINE_NOT_APPLICABLE);
}

TEST(CheckData, TalliesOfPartsMergeIntoTheFindingOfTheWhole) {
  const Labels whole({3, 1, 12, 0, -1, 12}), first({3, 1}), second({12, 0, -1, 12});
  const trapline_tensor all = whole.tensor(), a = first.tensor(), b = second.tensor();
  const json parts = {take(trapline_data_tally(&kTenClasses, &a, 0)),
                      take(trapline_data_tally(&kTenClasses, &b, 2))};
  const json one = {take(trapline_data_tally(&kTenClasses, &all, 0))};
  const char* subject = R"({"source": "train.csv", "name": "label", "dtype": "int64", "shape": [6]})";
  const json merged = take(trapline_data_findings(&kTenClasses, parts.dump().c_str(), subject));
  EXPECT_EQ(merged, take(trapline_data_findings(&kTenClasses, one.dump().c_str(), subject)));
  const json& finding = merged["findings"].at(0);
  EXPECT_EQ(finding["element"]["index"], json({2}));
  EXPECT_EQ(finding["element"]["bad"], 3);
  EXPECT_EQ(finding["values"].at(0), json({{"value", 12}, {"count", 2}}));
  EXPECT_EQ(finding["argument"], "label");
}

TEST(CheckData, WhatIsNoTallyIsAnAnswerAndNoCrash) {
  for (const char* tallies : {"", "{", "{}", "5", "[[[[", static_cast<const char*>(nullptr)}) {
    EXPECT_TRUE(take(trapline_data_findings(&kTenClasses, tallies, "{}")).contains("error"));
  }
  for (const char* tallies :
       {"[]", "[5, null, {}]", R"([{"bad": "x", "values": 7, "seen": {"of": 1e9, "runs": [[0, 99]]}}])",
        R"([{"seen": {"of": 4, "runs": [[-5, 2], [0, 5], [3], "x"]}, "first": {"index": "no"}}])"}) {
    EXPECT_EQ(take(trapline_data_findings(&kTenClasses, tallies, "{}"))["findings"], json::array())
        << tallies;
  }
  EXPECT_TRUE(take(trapline_data_findings(&kTenClasses, "[]", R"({"shape": "x"})")).contains("error"));
  EXPECT_TRUE(take(trapline_data_findings(nullptr, "[]", "{}")).contains("error"));
  EXPECT_TRUE(take(trapline_data_tally(&kTenClasses, nullptr, 0)).contains("error"));
}

}  // namespace
