// Facts of the watch, and what is advised on them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diagnose/watch.hpp"
#include "reading.hpp"

namespace trapline::diagnose {

using nlohmann::json;

inline const json kOutput = {{"what", "nan"},  {"kind", "output"}, {"step", 12},
                             {"unit", "step"}, {"name", "fc1"},    {"type", "Linear"}};

inline std::vector<std::string> fix_of(const json& watch) {
  const auto finding = diagnose_watch({{"kind", "watch"}, {"watch", watch}});
  EXPECT_TRUE(finding);
  return finding ? finding->fix : std::vector<std::string>{};
}

inline bool advises(const json& watch, const std::string& word) {
  return std::ranges::any_of(fix_of(watch),
                             [&](const std::string& line) { return line.find(word) != std::string::npos; });
}

}  // namespace trapline::diagnose
