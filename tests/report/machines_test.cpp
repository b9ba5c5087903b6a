#include "report/machines.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "report/json.hpp"
#include "report/utf8.hpp"
#include "report/writer.hpp"

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

std::vector<Report> recorded_reports() {
  std::vector<Report> reports;
  for (const auto& file : std::filesystem::directory_iterator(TRAPLINE_CASES)) {
    if (file.path().extension() != ".json") continue;
    std::stringstream text;
    text << std::ifstream(file.path(), std::ios::binary).rdbuf();
    const auto report = parse_report(text.str());
    EXPECT_TRUE(report) << file.path();
    if (report) reports.push_back(*report);
  }
  return reports;
}

// Every text of a finding as a hostile program would have it.
Finding spoilt(Finding finding, const std::string& text) {
  finding.summary = finding.op = finding.argument = text;
  finding.origin = Frame{text, 3, text, text, true, 2, 9};
  finding.surfaced = finding.origin;
  finding.stack = {*finding.origin, *finding.origin};
  finding.tensor = TensorInfo{{1}, text, text};
  finding.evidence = {{text, 4, text}};
  finding.fix = {text, text};
  return finding;
}

void expect_whole(const Format& format, const std::string& out) {
  EXPECT_EQ(out, valid_utf8(out)) << format.name;
  std::istringstream lines(out);
  if (format.name == "github") {
    for (std::string line; std::getline(lines, line);) EXPECT_TRUE(line.starts_with("::")) << line;
  } else if (format.name == "jsonl") {
    for (std::string line; std::getline(lines, line);) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  } else if (format.name == "junit") {
    EXPECT_TRUE(out.starts_with("<?xml ") && out.ends_with("</testsuites>\n"));
    EXPECT_EQ(out.find_first_of(std::string("\0\x01\x08\x1b", 4)), std::string::npos);
  } else if (format.name == "html") {
    EXPECT_TRUE(out.starts_with("<!doctype html>") && out.ends_with("</html>\n"));
    EXPECT_EQ(out.find("<a b="), std::string::npos);  // html_test.cpp reads all of it
  } else if (format.name != "text") {
    EXPECT_TRUE(nlohmann::json::accept(out)) << format.name;
  }
}

TEST(Formats, HoldTogetherWhateverTheReportSays) {
  const std::string hostile[] = {"plain",
                                 "",
                                 "\n::error::x\r\n",
                                 "]]><a b=\"c\">&",
                                 std::string("\0\x01\x1b[31m\xff\xfe", 9),
                                 "\xef\xbf\xbf%0A%25,:",
                                 std::string(5'000, 'x')};
  for (Report report : recorded_reports()) {
    for (const std::string& text : hostile) {
      Report bad = report;
      for (Finding& finding : bad.findings) finding = spoilt(finding, text);
      bad.notes = {text};
      bad.checked = {{text, text}};
      for (const Command command : {Command::kExplain, Command::kCheck}) {
        bad.command = command;
        for (const Format& format : formats_of_reports())
          expect_whole(format, format.render(bad, in_repository()));
      }
    }
  }
}

}  // namespace
}  // namespace trapline
