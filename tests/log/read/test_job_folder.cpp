#include <gtest/gtest.h>

#include "../../run/temporary.hpp"
#include "log/read/job_folder.hpp"

namespace trapline {
namespace {

struct Kept : LineSink {
  void line(const Line& line) override {
    lines.emplace_back(line.text);
    rank = line.rank;
  }
  void end_of_source(std::string_view, const SourceEnd&) override { ++ends; }
  std::vector<std::string> lines;
  int rank = -2;
  int ends = 0;
};

TEST(Folder, KindsAreToldByName) {
  EXPECT_EQ(kind_of_file("a/finding-host-1-1.json"), JobFile::kReport);
  EXPECT_EQ(kind_of_file("guard-host-1.json"), JobFile::kReport);
  EXPECT_EQ(kind_of_file("a/attempt_0/1/error.json"), JobFile::kErrorFile);
  EXPECT_EQ(kind_of_file("train.py"), JobFile::kSource);
  EXPECT_EQ(kind_of_file("finding-1.json.tmp"), JobFile::kLog);
  EXPECT_EQ(kind_of_file("rank0.log"), JobFile::kLog);
}

TEST(Folder, RankOfTorchrunsFolders) {
  EXPECT_EQ(rank_of_error_file("/tmp/x/attempt_0/12/error.json"), 12);
  EXPECT_EQ(rank_of_error_file("attempt_1/3/error.json"), 3);
  EXPECT_EQ(rank_of_error_file("/tmp/12/error.json"), -1);
  EXPECT_EQ(rank_of_error_file("attempt_0/x/error.json"), -1);
  EXPECT_EQ(rank_of_error_file("error.json"), -1);
}

TEST(ErrorFile, DeliversTheTraceback) {
  const Temporary folder;
  folder.write("attempt_0/2/error.json",
               R"({"message":{"message":"E: m","extraInfo":{"py_callstack":"Traceback\n  File\nE: m\n"}}})");
  Kept kept;
  const auto read = read_error_file((folder / "attempt_0/2/error.json").string(), kept);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(kept.lines, (std::vector<std::string>{"Traceback", "  File", "E: m"}));
  EXPECT_EQ(kept.rank, 2);
  EXPECT_EQ(kept.ends, 1);
}

TEST(ErrorFile, DeliversAPlainMessage) {
  const Temporary folder;
  folder.write("error.json", R"({"message":"Signal 9 (SIGKILL) received by PID 12"})");
  Kept kept;
  const auto read = read_error_file((folder / "error.json").string(), kept);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(kept.lines, std::vector<std::string>{"Signal 9 (SIGKILL) received by PID 12"});
}

TEST(ErrorFile, RefusesWhatIsNone) {
  const Temporary folder;
  Kept kept;
  for (const char* text : {"", "{", "[]", "{}", R"({"message":7})", R"({"message":{"message":[]}})", "\xff",
                           R"({"message":{"extraInfo":[],"message":""}})"}) {
    folder.write("error.json", text);
    const auto read = read_error_file((folder / "error.json").string(), kept);
    ASSERT_TRUE(read) << text;
    EXPECT_FALSE(*read) << text;
  }
  EXPECT_FALSE(read_error_file((folder / "missing.json").string(), kept));
  EXPECT_TRUE(kept.lines.empty());
}

}  // namespace
}  // namespace trapline
