#include "report/machines.hpp"

#include <gtest/gtest.h>

namespace trapline {
namespace {

Style in_repository() {
  Style style;
  style.repository = "/repo";
  style.directory = "/repo/sub";
  return style;
}

Frame at(const std::string& file, std::int64_t line = 3) { return {file, line, "", "", {}, 0, 0}; }

TEST(Spot, IsRelativeToTheRepository) {
  for (const auto& [file, path] : {std::pair{"train.py", "sub/train.py"},
                                   {"./a/../b.py", "sub/b.py"},
                                   {"../up.py", "up.py"},
                                   {"/repo/x.py", "x.py"}}) {
    const auto spot = spot_of(at(file), in_repository());
    ASSERT_TRUE(spot) << file;
    EXPECT_EQ(spot->path, path);
    EXPECT_TRUE(spot->inside);
  }
}

TEST(Spot, WhatLiesOutsideStaysAbsolute) {
  for (const char* file : {"/usr/lib/x.py", "/repository/x.py", "/repo"}) {
    const auto spot = spot_of(at(file), in_repository());
    ASSERT_TRUE(spot);
    EXPECT_EQ(spot->path, file);
    EXPECT_FALSE(spot->inside);
  }
}

TEST(Spot, ColumnsNeedALine) {
  Frame frame = at("a.py", 0);
  frame.column = 4, frame.end_column = 9;
  EXPECT_EQ(spot_of(frame, {})->column, 0);
  frame.line = 7;
  EXPECT_EQ(spot_of(frame, {})->end_column, 9);
}

TEST(Spot, WhatIsNoFileHasNone) {
  Frame cell = at("/tmp/ipykernel_1/2.py");
  cell.cell = 4;
  EXPECT_FALSE(spot_of(cell, {}));
  for (const char* file : {"", "<stdin>", "<string>", "Cell In[4]"})
    EXPECT_FALSE(spot_of(at(file), {})) << file;
}

TEST(LineForPeople, IsBoundedAndPrintable) {
  EXPECT_EQ(line_for_people("a\nb\x1b[m"), "a\\nb\\x1b[m");
  const std::string line = line_for_people(std::string(1 << 20, 'x'));
  EXPECT_EQ(line.size(), 2003U);
  EXPECT_TRUE(line.ends_with("..."));
}

TEST(Fingerprints, EqualOnesOfAReportDiffer) {
  Finding finding;
  finding.cause = Cause::kLabelOutOfRange;
  finding.op = "cross_entropy";
  finding.origin = at("a.py");
  const Report report{Command::kRun, Verdict::kFault, {finding, finding}, {}};
  const auto marks = fingerprints_of(report, {});
  ASSERT_EQ(marks.size(), 2U);
  EXPECT_EQ(marks[0].size(), 16U);
  EXPECT_EQ(marks[1], marks[0] + ":2");
}

}  // namespace
}  // namespace trapline
