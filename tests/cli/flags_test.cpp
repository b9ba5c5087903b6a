#include "cli/flags.hpp"

#include <gtest/gtest.h>

#include "cli/exit_code.hpp"
#include "cli/run_flags.hpp"

namespace trapline::cli {
namespace {

struct Given {
  RunOptions options;
  std::string error;  // empty: the words were read
};

Given given(const std::vector<std::string>& words) {
  Given out;
  FlagSet flags("run", "summary", "[flags]");
  declare_run_options(flags, out.options);
  const auto read = flags.read(words);
  if (!read) out.error = read.error().line();
  return out;
}

TEST(Flags, WhatIsNotGivenHasNoValue) {
  const RunOptions options = given({}).options;
  EXPECT_TRUE(variables_of(options).empty());
  EXPECT_EQ(options.steps, std::nullopt);
  EXPECT_EQ(options.on_fault, std::nullopt);
}

TEST(Flags, EveryKindOfValueReachesItsMember) {
  const Given all = given({"--cpu", "--steps", "20", "--watch=nan", "--report", "some folder", "--on-fault",
                           "skip", "--skip-limit", "0", "--quarantine=q.jsonl"});
  EXPECT_EQ(all.error, "");
  EXPECT_TRUE(all.options.cpu);
  EXPECT_EQ(all.options.steps, 20);
  EXPECT_EQ(all.options.watch, "nan");
  EXPECT_EQ(all.options.reports, "some folder");
  EXPECT_EQ(all.options.on_fault, "skip");
  EXPECT_EQ(all.options.skip_limit, 0.0);
  EXPECT_EQ(all.options.quarantine, "q.jsonl");
}

TEST(Flags, AnEmptyPathIsNotGiven) {
  const Given empty = given({"--report", "", "--quarantine="});
  EXPECT_EQ(empty.options.reports, std::nullopt) << empty.error;
  EXPECT_EQ(empty.options.quarantine, std::nullopt) << empty.error;
}

TEST(Flags, ValuesAreRefusedInPlainWords) {
  EXPECT_EQ(given({"--watch", "inf"}).error,
            "--watch must be light, nan, nan:stop or off, not 'inf': see `trapline run --help`");
  EXPECT_EQ(given({"--steps", "0"}).error,
            "--steps must be a whole number, at least 1, not '0': see `trapline run --help`");
  EXPECT_EQ(given({"--skip-limit", "101"}).error,
            "--skip-limit must be a number from 0 to 100, not '101': see `trapline run --help`");
  EXPECT_EQ(given({"--on-fualt", "skip"}).error,
            "`trapline run` has no flag '--on-fualt': did you mean --on-fault?");
}

TEST(Flags, TheProgramsWordsAreNotOurs) {
  FlagSet flags("run", "", "");
  RunOptions options;
  declare_run_options(flags, options);
  EXPECT_EQ(flags.count_own({"--steps", "3", "python", "--cpu"}), 2U);
  EXPECT_EQ(flags.count_own({"--steps=3", "--cpu", "--", "--cpu"}), 2U);
  EXPECT_EQ(flags.count_own({"python"}), 0U);
  EXPECT_EQ(flags.count_own({"--steps"}), 1U);
}

TEST(Flags, TheHelpNamesEveryRow) {
  FlagSet flags("run", "the summary", "[flags] PROGRAM");
  RunOptions options;
  declare_run_options(flags, options);
  flags.set_footer("the last words");
  const std::string page = flags.help();
  EXPECT_NE(page.find("usage: trapline run [flags] PROGRAM\n"), std::string::npos) << page;
  EXPECT_NE(page.find("the last words"), std::string::npos);
  for (const RunOption& row : run_options()) {
    const std::string names = std::string(row.flag) + (row.value.empty() ? "" : " " + std::string(row.value));
    EXPECT_NE(page.find("  " + names + " "), std::string::npos) << names << "\n" << page;
  }
  EXPECT_EQ(*flags.read({"--cpu", "-h"}), FlagSet::Read::kHelpWanted);
}

TEST(ExitCode, SaysTheVerdict) {
  EXPECT_EQ(exit_code_of(Verdict::kClean), 0);
  EXPECT_EQ(exit_code_of(Verdict::kFault), 1);
  EXPECT_EQ(exit_code_of(Verdict::kUnknown), 3);
  EXPECT_EQ(kUsageError, 2);
}

}  // namespace
}  // namespace trapline::cli
