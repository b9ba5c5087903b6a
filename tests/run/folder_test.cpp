#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/json.hpp"
#include "run/collect.hpp"
#include "run/notes.hpp"
#include "run/report_folder.hpp"
#include "temporary.hpp"

namespace trapline {
namespace {

std::string report_with(const std::string& summary) {
  Report report;
  report.verdict = Verdict::kFault;
  report.findings.emplace_back().summary = summary;
  return to_json(report).dump();
}

TEST(ReportFolder, IsMadeWithItsParents) {
  const Temporary temporary;
  const auto folder = ReportFolder::open(temporary / "a/b");
  ASSERT_TRUE(folder) << folder.error().line();
  EXPECT_TRUE(std::filesystem::is_directory(temporary / "a/b"));
  EXPECT_TRUE(std::filesystem::is_empty(temporary / "a/b"));
}

TEST(ReportFolder, ThatCannotBeWrittenIsAnError) {
  const Temporary temporary;
  temporary.write("file", "");
  const auto folder = ReportFolder::open(temporary / "file");
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().line().find("--report DIR"), std::string::npos) << folder.error().line();
  EXPECT_FALSE(ReportFolder::open("/proc/self"));
}

TEST(ReportFolder, PrivateOneIsRemovedWithItsFiles) {
  const Temporary temporary;
  std::filesystem::path path;
  {
    const auto folder = ReportFolder::make_private(temporary.path());
    ASSERT_TRUE(folder);
    path = folder->path();
    struct stat state {};
    ASSERT_EQ(::stat(path.c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 0777U, 0700U);
    temporary.write(path.filename().string() + "/finding-a-1-1.json", "x");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Collect, TakesTheFilesOfThisRunOnly) {
  const Temporary temporary;
  temporary.write("finding-h-1-1.json", report_with("old"));
  temporary.write("finding-h-2-1.json", report_with("replaced"));
  const auto folder = ReportFolder::open(temporary.path());
  ASSERT_TRUE(folder);
  temporary.write("new", report_with("newer"));
  std::filesystem::rename(temporary / "new", temporary / "finding-h-2-1.json");
  temporary.write("finding-h-3-1.json", report_with("new"));
  temporary.write("finding-h-4-1.json.tmp", report_with("temporary"));
  temporary.write(".finding-h-4-1.json", report_with("temporary"));
  temporary.write("other.json", report_with("foreign"));
  const Collected collected = collect(*folder);
  ASSERT_EQ(collected.findings.size(), 2U);
  EXPECT_EQ(collected.findings[0].finding.summary, "newer");
  EXPECT_EQ(collected.findings[1].finding.summary, "new");
  EXPECT_TRUE(collected.notes.empty());
}

TEST(Collect, DamagedFilesAreOmissions) {
  const Temporary temporary;
  const auto folder = ReportFolder::open(temporary.path());
  const std::string whole = report_with("whole");
  temporary.write("finding-h-1-1.json", whole.substr(0, whole.size() / 2));
  temporary.write("finding-h-2-1.json", whole);
  temporary.write("secret", whole);
  std::filesystem::create_symlink(temporary / "secret", temporary / "finding-h-3-1.json");
  std::filesystem::create_directory(temporary / "finding-h-4-1.json");
  ASSERT_EQ(::mkfifo((temporary / "finding-h-5-1.json").c_str(), 0600), 0);
  const Collected collected = collect(*folder);
  ASSERT_EQ(collected.findings.size(), 1U);
  ASSERT_EQ(collected.omissions.size(), 4U);
  EXPECT_EQ(collected.omissions[0], "finding-h-1-1.json was skipped: it is truncated or not JSON");
  EXPECT_TRUE(collected.omissions[1] == "finding-h-3-1.json could not be read: it is a link")
      << collected.omissions[1];
  EXPECT_EQ(collected.omissions[3], "finding-h-5-1.json could not be read: it is no regular file");
}

TEST(Collect, WhatAProcessCouldNotWriteIsAnOmission) {
  const Temporary temporary;
  const auto folder = ReportFolder::open(temporary.path());
  temporary.write("ended-h-1.json", R"({"over": true, "raised": {"TL101": 1}, "lost": 1})");
  temporary.write("ended-h-2.json", R"({"over": true, "raised": {"TL101": 1}, "lost": 0})");
  temporary.write("guard-h-1.json", R"({"adapter": "compiled", "lost":1})");  // it is said once
  temporary.write("guard-h-2.json", R"({"adapter": "compiled", "lost":0})");
  temporary.write("guard-h-3.json", R"({"adapter": "libtorch", "lost":1})");
  temporary.write("lost-h-4.json", "");
  const Collected collected = collect(*folder);
  ASSERT_EQ(collected.ends.size(), 2U);
  EXPECT_TRUE(collected.ends[0].lost && !collected.ends[1].lost);
  const std::string words = ": findings could not be written: its own output tells them";
  EXPECT_EQ(collected.omissions,
            (std::vector<std::string>{"process h-1" + words, "process h-3" + words, "process h-4" + words}));
}

TEST(Collect, WhatWasHandedOverIsPutIntoTheFolder) {
  const Temporary temporary;
  const auto folder = ReportFolder::open(temporary.path());
  const Handed handed{{{"finding-h-2-0.json", report_with("second"), 2'000'000'000},
                       {"finding-h-1-0.json", report_with("first"), 1'000'000'000},
                       {"guard-h-1.json", R"({"lost":0})", 0},
                       {"secret.json", "{}", 0}},
                      false};
  const Collected collected = collect(*folder, handed);
  ASSERT_EQ(collected.findings.size(), 2U);
  EXPECT_EQ(collected.findings[0].finding.summary, "first");
  EXPECT_EQ(collected.findings[1].finding.summary, "second");
  EXPECT_EQ(collected.guarded_processes, 1);
  EXPECT_TRUE(collected.omissions.empty());
  EXPECT_TRUE(std::filesystem::exists(temporary / "finding-h-2-0.json"));
  EXPECT_FALSE(std::filesystem::exists(temporary / "secret.json"));
}

TEST(Collect, WhatWasHandedOverIsReadWhereThereIsNoFolderAnyMore) {
  const Temporary temporary;
  const auto folder = ReportFolder::open(temporary / "gone");
  std::filesystem::remove(temporary / "gone");
  const Handed handed{{{"finding-h-1-0.json", report_with("handed"), 1},
                       {"ended-h-1.json", R"({"over": false})", 2},
                       {"ended-h-1.json", R"({"over": true, "unhandled": ["finding-h-1-0.json"]})", 3}},
                      true};
  const Collected collected = collect(*folder, handed);
  ASSERT_EQ(collected.findings.size(), 1U);
  EXPECT_EQ(collected.findings[0].finding.summary, "handed");
  EXPECT_EQ(collected.findings[0].file, "finding-h-1-0.json");
  ASSERT_EQ(collected.ends.size(), 1U);  // as the last one says it
  EXPECT_TRUE(collected.ends[0].over);
  ASSERT_EQ(collected.omissions.size(), 2U);
  EXPECT_TRUE(collected.omissions[0].starts_with("other processes of this machine have filled the socket"));
  EXPECT_EQ(collected.omissions[1],
            "the report folder could not be read, and what this run's processes wrote there is lost: "
            "No such file or directory");
}

TEST(Collect, AFindingOfAnotherUserIsLeftOutOfASharedFolder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const Temporary temporary;
  const auto folder = ReportFolder::open(temporary.path());
  temporary.write("finding-evil-1-0.json", report_with("forged"));
  ASSERT_EQ(::chown((temporary / "finding-evil-1-0.json").c_str(), 65534, 65534), 0);
  const Collected collected = collect(*folder);
  EXPECT_TRUE(collected.findings.empty());
  EXPECT_EQ(collected.omissions,
            std::vector<std::string>{
                "finding-evil-1-0.json was left out: it belongs to another user, with the number 65534"});
}

TEST(Collect, CountsGuardedProcessesAndTheirNotes) {
  const Temporary temporary;
  const auto folder = ReportFolder::open(temporary.path());
  temporary.write("guard-h-1.json", R"({"torch":"2.13.0","adapter":"pure","notes":["no compiler"]})");
  temporary.write("guard-h-2.json", R"({"torch":"2.13.0","adapter":"pure","notes":["no compiler", 7]})");
  temporary.write("guard-h-3.json", "damaged");
  const Collected collected = collect(*folder);
  EXPECT_EQ(collected.guarded_processes, 3U);
  EXPECT_EQ(collected.notes, std::vector<std::string>{"no compiler"});
}

TEST(Collect, AddsUpWhatProcessesSkipped) {
  const Temporary temporary;
  const auto folder = ReportFolder::open(temporary.path());
  EXPECT_EQ(sentence_about(collect(*folder).skip), "");
  temporary.write("skip-h-1.json", R"({"steps":100,"skipped":1,"samples":2,"quarantine":"/q.jsonl"})");
  EXPECT_EQ(sentence_about(collect(*folder).skip),
            "1 of 100 optimizer steps was skipped (1 %), 2 samples are in /q.jsonl");
  temporary.write("skip-h-2.json", R"({"steps":200,"skipped":1,"samples":0,"quarantine":null})");
  temporary.write("skip-h-3.json", R"({"steps":-1,"skipped":"x"})");
  temporary.write("skip-h-4.json", R"({"steps":1,"skipped":2})");
  temporary.write("skip-h-5.json", "[");
  const Collected collected = collect(*folder);
  EXPECT_EQ(sentence_about(collected.skip),
            "2 of 300 optimizer steps were skipped (0.67 %), 2 samples are in /q.jsonl");
  EXPECT_EQ(collected.omissions, std::vector<std::string>{"skip-h-4.json was skipped: it makes no sense"});
}

TEST(Collect, SkippedStepsWithoutNamedSamples) {
  EXPECT_EQ(sentence_about({.steps = 4, .skipped = 1, .samples = 0, .quarantine = {}}),
            "1 of 4 optimizer steps was skipped (25 %); which samples of the data set were bad is not known");
}

}  // namespace
}  // namespace trapline
