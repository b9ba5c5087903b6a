#include "report/snippet.hpp"

#include <gtest/gtest.h>

namespace trapline {
namespace {

std::string show(std::string code, std::int64_t column, std::int64_t end_column, int width = 80,
                 bool unicode = true) {
  Frame frame;
  frame.file = "a.py";
  frame.line = 7;
  frame.code = std::move(code);
  frame.column = column;
  frame.end_column = end_column;
  Style style;
  style.width = width;
  style.unicode = unicode;
  return render(snippet(frame, style), style);
}

TEST(Snippet, UnderlinesTheOperation) {
  EXPECT_EQ(show("    y = f(x)", 9, 13), "  |\n7 | y = f(x)\n  |     ^^^^\n");
}

TEST(Snippet, TabsAndWideCharactersKeepTheMarksInPlace) {
  EXPECT_EQ(show("\ty =\tf(x)", 6, 10), "  |\n7 | y = f(x)\n  |     ^^^^\n");
  EXPECT_EQ(show("\u640d = f(\u5931)", 5, 9), "  |\n7 | \u640d = f(\u5931)\n  |      ^^^^^\n");
  EXPECT_EQ(show("e\u0301 = f(x)", 6, 10), "  |\n7 | e\u0301 = f(x)\n  |     ^^^^\n");
}

TEST(Snippet, WithoutColumnsOnlyTheLine) {
  EXPECT_EQ(show("y = f(x)", 0, 0), "  |\n7 | y = f(x)\n");
  EXPECT_EQ(show("y", 40, 50), "  |\n7 | y\n") << "the file has changed";
  EXPECT_EQ(show("    y = f(x)", 1, 3), "  |\n7 | y = f(x)\n")
      << "columns in the indentation belong to another line";
}

TEST(Snippet, ACallThatGoesOnUnderlinesToTheEnd) {
  EXPECT_EQ(show("y = f(x,  ", 5, 2), "  |\n7 | y = f(x,\n  |     ^^^^\n");
  EXPECT_EQ(show("y = f(x)", 5, 99), "  |\n7 | y = f(x)\n  |     ^^^^\n");
}

TEST(Snippet, NothingToShow) {
  EXPECT_EQ(show("", 1, 2), "");
  EXPECT_EQ(show("   \t", 1, 2), "");
}

TEST(Snippet, CropsAroundTheOperation) {
  const std::string line = std::string(60, 'a') + " f(x) " + std::string(60, 'b');
  EXPECT_EQ(show(line, 62, 66, 40),
            "  |\n7 | \u2026aaaaaaaaaaaaaa f(x) bbbbbbbbbbbbbb\u2026\n  |                 ^^^^\n");
  const std::string text = show(line, 62, 66, 40, false);
  EXPECT_NE(text.find("...aaaaaaaaaaaa f(x) "), std::string::npos) << text;
}

TEST(Snippet, TheBeginningOfTheLineStaysWhenTheOperationFitsBehindIt) {
  const std::string tail = ", " + std::string(60, 'b');
  EXPECT_EQ(show("auto loss = f(x)" + tail, 13, 17, 40),
            "  |\n7 | auto loss = f(x), bbbbbbbbbbbbbbbb\u2026\n  |             ^^^^\n");
}

TEST(Snippet, AnOperationThatIsTooLongIsCutAtItsEnd) {
  const std::string text = show("y = " + std::string(200, 'f'), 5, 205, 40);
  EXPECT_NE(text.find("7 | y = ffff"), std::string::npos) << text;
  EXPECT_NE(text.find("|     ^^^^"), std::string::npos) << text;
  const std::string far = show(std::string(60, 'y') + " = " + std::string(200, 'f'), 64, 264, 40);
  EXPECT_NE(far.find("\u2026ffff"), std::string::npos) << far;
}

}  // namespace
}  // namespace trapline
