// Facts of a violation, and questions about the finding's advice, for the tests of what a report says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "contracts/contract.hpp"
#include "reading.hpp"

namespace trapline::diagnose {

using nlohmann::json;

inline json facts_of(const char* contract, std::int64_t value, std::int64_t hi, json more = json::object()) {
  json facts = {{"kind", "violation"},
                {"contract", contract},
                {"index", {3}},
                {"tensor", {{"shape", {4}}, {"dtype", "int64"}, {"device", "cpu"}}},
                {"values", json::array({json::array({value, 1})})},
                {"scan",
                 {{"bad", 1},
                  {"total", 4},
                  {"first", 3},
                  {"value", value},
                  {"min", value < 0 ? value : 0},
                  {"max", value < 0 ? 2 : value},
                  {"lo", 0},
                  {"hi", hi},
                  {"reason", value < 0 ? 1 : 2}}}};
  facts.merge_patch(more);
  return facts;
}

inline json layer(const char* name, const char* attribute, std::int64_t value) {
  return {{"name", name}, {"type", "Linear"}, {"attribute", attribute}, {"value", value}, {"certain", true}};
}

inline Finding diagnose(const json& facts) {
  const Result<Finding> result = diagnose_violation(facts);
  EXPECT_TRUE(result) << (result ? "" : result.error().line());
  return result ? *result : Finding{};
}

inline bool says(const Finding& finding, std::string_view words) {
  return std::any_of(finding.fix.begin(), finding.fix.end(),
                     [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

// Asks for a larger size, or whether it is right, in whatever words.
inline bool speaks_of_size(const Finding& finding) {
  return says(finding, "size is right") || says(finding, "of the two is meant") ||
         says(finding, "meant to be more") || says(finding, "more rows") || says(finding, "more outputs");
}

inline std::string all(const Finding& finding) {
  std::string text = finding.summary;
  for (const std::string& line : finding.fix) text += "\n" + line;
  return text;
}

}  // namespace trapline::diagnose
