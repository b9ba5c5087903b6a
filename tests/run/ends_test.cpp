#include "report/ends.hpp"

#include <gtest/gtest.h>

#include "run/notes.hpp"

namespace trapline {
namespace {

CollectedFinding found(Cause cause, const std::string& file, const std::string& summary = "") {
  Finding finding;
  finding.cause = cause;
  finding.summary = summary.empty() ? file : summary;
  return {finding, 1, file};
}

std::vector<std::string> files(const Collected& collected) {
  std::vector<std::string> out;
  for (const CollectedFinding& item : collected.findings) out.push_back(item.file);
  return out;
}

Collected two_faults() {
  Collected out;
  out.findings = {found(Cause::kIndexOutOfRange, "a"), found(Cause::kLabelOutOfRange, "b")};
  out.ends.resize(1);
  out.ends[0].over = true;
  out.ends[0].raised = {{"TL105", 4}, {"TL101", 1}};
  return out;
}

using Names = std::vector<std::string>;
using Counts = std::map<std::string, std::uint64_t>;

TEST(Ends, TheUncaughtFaultIsLeftAndTheOthersAreCounted) {
  Collected collected = two_faults();
  collected.ends[0].unhandled = {"b"};
  const Settled settled = settle(collected, true);
  EXPECT_EQ(files(collected), Names{"b"});
  EXPECT_TRUE(settled.uncaught);
  EXPECT_EQ(settled.caught, (Counts{{"TL105", 4}}));
  EXPECT_EQ(sentence_about(settled.caught), "the program caught 4 faults (TL105)");
}

TEST(Ends, AnotherExceptionLeavesNone) {
  Collected collected = two_faults();
  collected.ends[0].other = "KeyError: 'rate'";
  const Settled settled = settle(collected, true);
  EXPECT_TRUE(collected.findings.empty());
  EXPECT_EQ(settled.other, "KeyError: 'rate'");
  const std::vector<std::string> lines = lines_about(settled.taken, settled.caught, "");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].starts_with("caught: [TL105]")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("caught: [TL101]")) << lines[1];
  EXPECT_EQ(sentence_about(settled.caught), "the program caught 5 faults (TL101, TL105)");
}

TEST(Ends, OneRanksFaultIsNotHiddenByAnothersException) {
  Collected collected = two_faults();
  collected.ends[0].unhandled = {"a"};
  collected.ends.emplace_back().other = "RuntimeError: connection closed by peer";
  EXPECT_TRUE(settle(collected, true).other.empty());
  EXPECT_EQ(files(collected), Names{"a"});
}

TEST(Ends, AFaultThatArrivedAsTextIsTheWorkers) {
  Collected collected = two_faults();
  collected.findings[0].finding.summary = "x[index]: index[0] is 9";
  collected.ends[0].elsewhere =
      "Caught DeviceAssertError in worker 0.\ntrapline.DeviceAssertError: x[index]: index[0] is 9";
  EXPECT_TRUE(settle(collected, true).uncaught);
  EXPECT_EQ(files(collected), Names{"a"});
}

TEST(Ends, AnExitInAnExceptComesBeforeOlderFaults) {
  Collected collected = two_faults();
  collected.ends[0].left_with = {"b"};
  EXPECT_FALSE(settle(collected, true).caught_before);
  EXPECT_EQ(files(collected), Names{"b"});
}

TEST(Ends, WithoutEvidenceAllStaysAndIsSaid) {
  Collected collected = two_faults();
  const Settled settled = settle(collected, true);
  EXPECT_EQ(files(collected), (Names{"a", "b"}));
  EXPECT_TRUE(settled.caught_before);
  const auto notes = notes_about(settled, {3, 0, false}, true, "see D");
  EXPECT_EQ(notes, (Names{"the program caught this fault; later it ended with exit code 3",
                          "the program caught 3 faults (TL105); see D"}));
}

TEST(Ends, OfAKilledProcessItIsNotKnown) {
  Collected collected = two_faults();
  collected.ends.clear();
  const Settled settled = settle(collected, true);
  EXPECT_EQ(files(collected), (Names{"a", "b"}));
  EXPECT_EQ(notes_about(settled, {137, 9, false}, true, ""),
            Names{"whether the program had caught this fault before is not known"});
  EXPECT_TRUE(notes_about(settled, {1, 0, false}, true, "").empty());
}

TEST(Ends, AFaultThatIsInNoFileIsNotCalledCaught) {
  Collected lost;
  lost.ends.resize(1);
  lost.ends[0].over = true;
  lost.ends[0].raised = {{"TL101", 1}};
  EXPECT_EQ(sentence_about(settle(lost, true).caught), "the program caught 1 fault (TL101)");
  lost.ends[0].lost = true;
  EXPECT_EQ(sentence_about(settle(lost, true).caught), "");
}

TEST(Ends, AGoodEndKeepsEverything) {
  Collected collected = two_faults();
  EXPECT_FALSE(settle(collected, false).uncaught);
  collected.ends[0].unhandled = {"a"};
  EXPECT_TRUE(settle(collected, false).uncaught) << "in a thread, or a function of atexit";
  collected.ends[0].went_on = true;
  EXPECT_FALSE(settle(collected, false).uncaught) << "in a cell";
  EXPECT_EQ(collected.findings.size(), 2U);
}

TEST(Ends, WhatWasWatchedWasNeverRaised) {
  Collected collected = two_faults();
  collected.findings.push_back(found(Cause::kNonFiniteValue, "n"));
  collected.ends[0].other = "KeyError";
  settle(collected, true);
  EXPECT_EQ(files(collected), Names{"n"});
}

TEST(Skip, SharesAreWrittenAsPeopleDo) {
  const auto sentence = [](std::uint64_t part, std::uint64_t whole) {
    SkipCounts counts;
    counts.steps = whole;
    counts.skipped = part;
    return sentence_about(counts);
  };
  EXPECT_TRUE(sentence(400, 400).starts_with("400 of 400 optimizer steps were skipped (100 %)"));
  EXPECT_TRUE(sentence(999, 1000).starts_with("999 of 1000 optimizer steps were skipped (over 99 %)"));
  EXPECT_TRUE(sentence(2, 2).starts_with("2 of 2 optimizer steps were skipped (100 %)"));
  EXPECT_TRUE(sentence(1, 2'000'000).starts_with("1 of 2000000 optimizer steps was skipped (under 0.01 %)"));
  EXPECT_TRUE(sentence(2, 300).starts_with("2 of 300 optimizer steps were skipped (0.67 %)"));
  EXPECT_TRUE(sentence(1, 8).starts_with("1 of 8 optimizer steps was skipped (12 %)"));
}

}  // namespace
}  // namespace trapline
