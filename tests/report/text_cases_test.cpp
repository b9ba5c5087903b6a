// Golden cases: cases/NAME.json is a report, cases/NAME.txt the text that a person gets.
// NAME.verbose, NAME.color and NAME.ascii ask for that style. After a wanted change of the text run
//   TRAPLINE_UPDATE_CASES=1 report_test --gtest_filter='*TextCase*'
// and read the difference before you commit it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "report/json.hpp"
#include "report/text.hpp"
#include "report/utf8.hpp"

namespace trapline {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(TRAPLINE_CASES)) {
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Style style_of(const std::string& name) {
  Style style;
  style.verbose = name.find(".verbose") != std::string::npos;
  style.color = name.find(".color") != std::string::npos;
  style.unicode = name.find(".ascii") == std::string::npos;
  return style;
}

std::string render_case(const std::string& name, const Style& style) {
  const auto report = parse_report(read(fs::path(TRAPLINE_CASES) / (name + ".json")));
  EXPECT_TRUE(report) << report.error().line();
  return report ? render_text(*report, style) : std::string();
}

class TextCase : public testing::TestWithParam<std::string> {};

TEST_P(TextCase, ReadsAsRecorded) {
  const fs::path expected = fs::path(TRAPLINE_CASES) / (GetParam() + ".txt");
  const std::string text = render_case(GetParam(), style_of(GetParam()));
  if (std::getenv("TRAPLINE_UPDATE_CASES") != nullptr) std::ofstream(expected, std::ios::binary) << text;
  EXPECT_EQ(text, read(expected));
}

TEST_P(TextCase, FitsTheTerminal) {
  for (const int width : {40, 80, 100}) {
    Style style;
    style.width = width;
    std::istringstream text(render_case(GetParam(), style));
    std::size_t lines = 0;
    for (std::string line; std::getline(text, line); ++lines) {
      // A path stays whole, so that it can be clicked on.
      if (line.find("--> ") == std::string::npos) {
        EXPECT_LE(width_of(line), width) << line;
      }
    }
    EXPECT_LE(lines, width < 80 ? kMaxLines + 5 : kMaxLines);
  }
}

TEST_P(TextCase, CannotDriveTheTerminal) {
  Style style;
  for (const bool verbose : {false, true}) {
    for (const bool unicode : {false, true}) {
      style.verbose = verbose;
      style.unicode = unicode;
      for (const char c : render_case(GetParam(), style)) {
        EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
        EXPECT_NE(c, '\x7f');
        if (!unicode) {
          EXPECT_LT(static_cast<unsigned char>(c), 0x80);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TextCase, testing::ValuesIn(cases()), [](const auto& param) {
  std::string name = param.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(TextCases, AreFound) { EXPECT_GE(cases().size(), 15U); }

}  // namespace
}  // namespace trapline
