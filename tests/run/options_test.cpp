#include "run/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace trapline {
namespace {

using Variables = std::vector<std::pair<std::string_view, std::string>>;

TEST(RunOptions, WhatIsNotGivenIsNotSet) {
  EXPECT_EQ(variables_of({}), Variables());
  EXPECT_FALSE(problem_of({}));
}

TEST(RunOptions, EachKindAsItsText) {
  RunOptions options;
  options.cpu = true;
  options.steps = 20;
  options.watch = "nan";
  options.reports = "/reports";
  options.on_fault = "skip";
  options.skip_limit = 2.5;
  options.quarantine = "/q.jsonl";
  EXPECT_EQ(variables_of(options), (Variables{{"TRAPLINE_CPU", "1"},
                                              {"TRAPLINE_STEPS", "20"},
                                              {"TRAPLINE_WATCH", "nan"},
                                              {"TRAPLINE_REPORT_DIR", "/reports"},
                                              {"TRAPLINE_ON_FAULT", "skip"},
                                              {"TRAPLINE_SKIP_LIMIT", "2.5"},
                                              {"TRAPLINE_QUARANTINE", "/q.jsonl"}}));
}

TEST(RunOptions, ALimitOfZeroIsALimit) {
  RunOptions options;
  options.on_fault = "skip";
  options.skip_limit = 0;
  EXPECT_EQ(variables_of(options).back(), (Variables::value_type{"TRAPLINE_SKIP_LIMIT", "0"}));
}

TEST(RunOptions, ALimitNeedsSkipping) {
  RunOptions options;
  options.skip_limit = 0;
  ASSERT_TRUE(problem_of(options));
  EXPECT_EQ(problem_of(options)->line(),
            "--skip-limit has nothing to limit: no step is skipped: add --on-fault skip");
  options.on_fault = "skip";
  EXPECT_FALSE(problem_of(options));
}

TEST(RunOptions, NoTwoRowsShareAFlagOrAVariable) {
  std::vector<std::string_view> names;
  for (const RunOption& row : run_options()) {
    names.push_back(row.variable);
    names.push_back(row.flag);
    EXPECT_TRUE(row.variable.starts_with("TRAPLINE_")) << row.variable;
    EXPECT_TRUE(row.flag.starts_with("--")) << row.flag;
    EXPECT_FALSE(row.help.empty()) << row.flag;
    EXPECT_EQ(std::holds_alternative<Switch>(row.kind), row.value.empty()) << row.flag;
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace trapline
