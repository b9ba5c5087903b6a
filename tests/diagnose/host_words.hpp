// A host error's facts for the tests of its words.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "reading.hpp"

namespace trapline::diagnose {

inline nlohmann::json operand(const char* name, const char* role, std::vector<int> shape,
                              const char* dtype = "float32", const char* device = "cpu") {
  return {{"name", name}, {"as", role}, {"shape", shape}, {"dtype", dtype}, {"device", device}};
}

inline Finding explained(const nlohmann::json& facts) {
  const auto finding = diagnose_host_error(facts);
  EXPECT_TRUE(finding);
  return finding.value_or(Finding{});
}

}  // namespace trapline::diagnose
