// Facts of a violation as a test writes them, and what is expected of their words.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "contracts/contract.hpp"
#include "reading.hpp"

namespace trapline::diagnose {

using nlohmann::json;

struct ViolationFacts {
  json object;
  ViolationFacts(const char* contract, json value, std::int64_t hi) {
    const bool is_float = value.is_number_float() || value == "nan" || value == "inf";
    object = {{"kind", "violation"},
              {"contract", contract},
              {"index", {3}},
              {"tensor", {{"shape", {32}}, {"dtype", is_float ? "float32" : "int64"}, {"device", "cpu"}}},
              {"values", json::array({json::array({value, 1})})},
              {"scan",
               {{"bad", 1},
                {"total", 32},
                {"first", 3},
                {"value", value},
                {"min", 0},
                {"max", value},
                {"lo", 0},
                {"hi", hi},
                {"also", nullptr},
                {"list_position", nullptr},
                {"reason", 2},
                {"is_float", is_float}}}};
  }
  ViolationFacts& scan(const char* name, json value) {
    object["scan"][name] = std::move(value);
    return *this;
  }
  ViolationFacts& with(const char* name, json value) {
    object[name] = std::move(value);
    return *this;
  }
  ViolationFacts& below() { return scan("reason", 1).scan("min", object["scan"]["value"]); }
  ViolationFacts& layer(const char* name, const char* type, const char* attribute) {
    return with("layer", {{"name", name},
                          {"type", type},
                          {"attribute", attribute},
                          {"value", object["scan"]["hi"]},
                          {"certain", true}});
  }
};

inline Finding diagnose(const ViolationFacts& facts) {
  const Result<Finding> result = diagnose_violation(facts.object);
  EXPECT_TRUE(result) << (result ? "" : result.error().line());
  return result ? *result : Finding{};
}

inline void expect(const ViolationFacts& facts, Cause cause, const char* summary, const char* first_fix) {
  const Finding finding = diagnose(facts);
  EXPECT_EQ(info(finding.cause).slug, info(cause).slug) << summary;
  EXPECT_EQ(finding.summary, summary);
  ASSERT_FALSE(finding.fix.empty()) << summary;
  EXPECT_EQ(finding.fix.front(), first_fix);
}

inline ViolationFacts label(std::int64_t value, std::int64_t classes) {
  return ViolationFacts("nll_loss_forward.target", value, classes).scan("also", -100);
}

}  // namespace trapline::diagnose
