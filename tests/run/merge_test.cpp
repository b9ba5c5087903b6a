#include "report/merge.hpp"

#include <gtest/gtest.h>

#include "run/notes.hpp"

namespace trapline {
namespace {

Finding finding(Cause cause, std::int64_t line, std::optional<std::int64_t> rank, std::int64_t pid,
                std::int64_t value = 195) {
  Finding out;
  out.cause = cause;
  out.summary = "value " + std::to_string(value);
  out.origin = Frame{"train.py", line, "step", "", true, 0, 0};
  out.process = Process{rank, pid, "h", ""};
  out.element = Element{{3}, Scalar(value), 1, 32, std::nullopt, std::nullopt};
  return out;
}

Report merged(std::vector<Finding> findings, std::vector<std::string> notes = {}) {
  Collected collected;
  collected.notes = std::move(notes);
  long long time = 0;
  for (Finding& item : findings) collected.findings.push_back({std::move(item), ++time});
  return merge(collected);
}

TEST(Merge, NothingIsClean) { EXPECT_EQ(merged({}).verdict, Verdict::kClean); }

TEST(Merge, TheSameFindingOfSeveralRanksIsOne) {
  const Report report =
      merged({finding(Cause::kLabelOutOfRange, 41, 2, 12), finding(Cause::kLabelOutOfRange, 41, 0, 10, 196),
              finding(Cause::kLabelOutOfRange, 41, 3, 13), finding(Cause::kLabelOutOfRange, 41, 1, 11)},
             {"a note"});
  EXPECT_EQ(report.verdict, Verdict::kFault);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].process->rank, 2);
  ASSERT_EQ(report.findings[0].evidence.size(), 3U);
  EXPECT_EQ(report.findings[0].evidence[0].source, "rank 0, pid 10, host h");
  EXPECT_EQ(report.findings[0].evidence[0].text, "value 196");
  EXPECT_EQ(report.notes,
            (std::vector<std::string>{"TL101 came from 3 more processes too (ranks 0, 1, 3)", "a note"}));
}

TEST(Merge, AWorkerAndItsParentSayItOnce) {
  const Report report =
      merged({finding(Cause::kIndexOutOfRange, 7, {}, 20), finding(Cause::kIndexOutOfRange, 7, {}, 10)});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_TRUE(report.notes.empty());
  EXPECT_TRUE(report.findings[0].evidence.empty());
}

TEST(Merge, RepeatsOfOneProcessAreCounted) {
  const Report report =
      merged({finding(Cause::kLabelOutOfRange, 41, {}, 10), finding(Cause::kLabelOutOfRange, 41, {}, 10, 200),
              finding(Cause::kLabelOutOfRange, 41, {}, 10, 201)});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.notes,
            std::vector<std::string>{"TL101 was raised 3 times by the same process; this is the first"});
}

TEST(Merge, TheCauseComesBeforeTheClock) {
  Finding victim = finding(Cause::kPoisonedContext, 9, 0, 10);
  victim.role = Role::kConsequence;
  const Report report =
      merged({victim, finding(Cause::kShapeMismatch, 50, 1, 11), finding(Cause::kLabelOutOfRange, 41, 2, 12),
              finding(Cause::kLabelOutOfRange, 42, 3, 13)});
  ASSERT_EQ(report.findings.size(), 4U);
  EXPECT_EQ(report.findings[0].origin->line, 41);
  EXPECT_EQ(report.findings[1].origin->line, 42);
  EXPECT_EQ(report.findings[2].cause, Cause::kShapeMismatch);
  EXPECT_EQ(report.findings[3].cause, Cause::kPoisonedContext);
}

TEST(Merge, VictimsStayApart) {
  Finding victim = finding(Cause::kPoisonedContext, 9, 0, 10);
  victim.role = Role::kConsequence;
  Finding other = victim;
  other.process->rank = 1;
  other.process->pid = 11;
  const Report report = merged({finding(Cause::kLabelOutOfRange, 41, 2, 12), victim, other});
  EXPECT_EQ(report.findings.size(), 3U);
  EXPECT_TRUE(report.notes.empty());
}

Report from_logs(std::vector<Finding> findings) {
  Report report;
  report.command = Command::kExplain;
  report.verdict = findings.empty() ? Verdict::kClean : Verdict::kFault;
  report.findings = std::move(findings);
  report.notes = {"the log is cut"};
  return report;
}

TEST(MergeWithLogs, LogsAloneStand) {
  const Report report = merge(merged({}), from_logs({finding(Cause::kLabelOutOfRange, 41, 0, 1)}));
  EXPECT_EQ(report.verdict, Verdict::kFault);
  EXPECT_EQ(report.command, Command::kExplain);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.notes, std::vector<std::string>{"the log is cut"});
  EXPECT_EQ(merge(merged({}), from_logs({})).verdict, Verdict::kClean);
}

TEST(MergeWithLogs, WhatWasSeenIsTheRootAndTheSameInALogOnlyAddsItsLines) {
  Finding seen = finding(Cause::kNumClassesMismatch, 41, 0, 1);
  seen.certainty = Certainty::kProven;
  Finding told = finding(Cause::kLabelOutOfRange, 44, 0, 1);
  told.also = {Cause::kNumClassesMismatch};
  told.evidence = {{"rank0.log", 7, "Assertion"}};
  const Report report = merge(merged({seen}), from_logs({told}));
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].certainty, Certainty::kProven);
  ASSERT_EQ(report.findings[0].evidence.size(), 1U);
  EXPECT_EQ(report.findings[0].evidence[0].source, "rank0.log");
  EXPECT_EQ(report.verdict, Verdict::kFault);
}

TEST(MergeWithLogs, AnotherFaultAndTheVictimsFollow) {
  Finding victim = finding(Cause::kPoisonedContext, 9, 3, 13);
  victim.role = Role::kConsequence;
  Finding nothing_new = finding(Cause::kInsufficientEvidence, 44, 0, 1);
  const Report report = merge(merged({finding(Cause::kLabelOutOfRange, 41, 0, 1)}),
                              from_logs({nothing_new, victim, finding(Cause::kOutOfMemory, 50, 2, 12)}));
  ASSERT_EQ(report.findings.size(), 3U);
  EXPECT_EQ(report.findings[0].cause, Cause::kLabelOutOfRange);
  EXPECT_EQ(report.findings[1].cause, Cause::kOutOfMemory);
  EXPECT_EQ(report.findings[2].cause, Cause::kPoisonedContext);
}

TEST(Notes, TellHowTheProgramEnded) {
  EXPECT_TRUE(notes_about({0, 0, false}, false, 0).empty());
  EXPECT_TRUE(notes_about({0, 0, false}, false, 0, true).empty());
  EXPECT_TRUE(notes_about({1, 0, false}, true, 0, true).empty());
  const auto cpp = notes_about({1, 0, false}, false, 0, true);
  ASSERT_EQ(cpp.size(), 1U);
  EXPECT_EQ(cpp[0].find("the program failed without a fault that Trapline saw. Where a line"), 0U);
  EXPECT_TRUE(notes_about({1, 0, false}, true, 0).empty());
  EXPECT_TRUE(notes_about({1, 0, false}, false, 1).empty());
  EXPECT_TRUE(notes_about({130, 2, false}, false, 0).empty()) << "Ctrl-C is no failure";
  ASSERT_EQ(notes_about({1, 0, false}, false, 0).size(), 1U);
  EXPECT_NE(notes_about({1, 0, false}, false, 0)[0].find("PYTHONPATH"), std::string::npos);
  EXPECT_EQ(
      notes_about({139, 11, true}, false, 1),
      std::vector<std::string>{"the program was killed by signal 11 (Segmentation fault), core dumped"});
  EXPECT_NE(notes_about({137, 9, false}, false, 1)[0].find("memory"), std::string::npos);
}

}  // namespace
}  // namespace trapline
