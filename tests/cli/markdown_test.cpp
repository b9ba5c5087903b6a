#include "cli/markdown.hpp"

#include <gtest/gtest.h>

namespace trapline::cli {
namespace {

Style narrow() {
  Style style;
  style.width = 20;
  return style;
}

TEST(Markdown, JoinsAndWrapsParagraphs) {
  EXPECT_EQ(render_markdown("one two three\nfour five six\n", narrow()), "one two three four\nfive six\n");
}

TEST(Markdown, HangsTheLinesOfAnItem) {
  EXPECT_EQ(render_markdown("- one two three four five\n- six\n", narrow()),
            "- one two three four\n  five\n- six\n");
}

TEST(Markdown, KeepsCodeAsItIs) {
  EXPECT_EQ(render_markdown("```python\nif x:\n    y = a_long_line_of_code()\n\nz\n```\n", narrow()),
            "    if x:\n        y = a_long_line_of_code()\n\n    z\n");
}

TEST(Markdown, DropsTheMarksOfHeadings) { EXPECT_EQ(render_markdown("## Words\n", narrow()), "Words\n"); }

TEST(Markdown, PaintsHeadingsWhenColourIsWanted) {
  Style style = narrow();
  style.color = true;
  EXPECT_NE(render_markdown("# A\n", style).find("\x1b[1m"), std::string::npos);
}

TEST(Markdown, TakesBlankAndEmptyText) {
  EXPECT_EQ(render_markdown("", narrow()), "");
  EXPECT_EQ(render_markdown("\n", narrow()), "\n");
  EXPECT_EQ(render_markdown("   ", narrow()), "");
}

}  // namespace
}  // namespace trapline::cli
