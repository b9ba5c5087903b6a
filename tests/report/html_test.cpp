// The page of a report: whole, without script, and nothing that a program wrote becomes markup.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/html/markup.hpp"
#include "report/html/page.hpp"
#include "report/html/pictures.hpp"
#include "report/json.hpp"

namespace trapline {
namespace {

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Reads the markup of a page: every tag is one of those we use, closed in its order, and its attributes are
// too. What is wrong, or nothing.
std::string problem_of(std::string_view page) {
  static const std::set<std::string, std::less<>> kTags = {
      "html", "head", "body", "meta", "title", "style", "main", "footer",  "article", "section",
      "h1",   "h2",   "h3",   "h4",   "p",     "pre",   "span", "code",    "mark",    "figure",
      "dl",   "dt",   "dd",   "div",  "ul",    "ol",    "li",   "details", "summary", "figcaption",
      "b",    "br",   "svg",  "rect", "table", "thead", "tr",   "th",      "td",      "tbody"};
  static const std::set<std::string, std::less<>> kAttributes = {"charset",
                                                                 "name",
                                                                 "content",
                                                                 "http-equiv",
                                                                 "lang",
                                                                 "class",
                                                                 "role",
                                                                 "aria-label",
                                                                 "colspan",
                                                                 "viewBox",
                                                                 "x",
                                                                 "y",
                                                                 "width",
                                                                 "height",
                                                                 "scope",
                                                                 "tabindex",
                                                                 "preserveAspectRatio"};
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string_view::npos; at = page.find('<', at)) {
    if (page.substr(at).starts_with("<!doctype html>")) {
      at += 15;
      continue;
    }
    const bool closes = page[at + 1] == '/';
    std::size_t end = at + (closes ? 2 : 1);
    const std::size_t start = end;
    while (end < page.size() && std::isalnum(static_cast<unsigned char>(page[end])) != 0) ++end;
    const std::string name(page.substr(start, end - start));
    if (!kTags.contains(name)) return "tag " + name + " at " + std::string(page.substr(at, 60));
    while (!closes && page[end] == ' ') {
      const std::size_t equals = page.find_first_of("=>", end);
      const std::string key(page.substr(end + 1, equals - end - 1));
      if (!kAttributes.contains(key)) return "attribute " + key;
      if (page[equals + 1] != '"') return "a value without quotes: " + key;
      end = page.find('"', equals + 2) + 1;
    }
    if (page[end] != '>') return "no end of " + name;
    if (closes) {
      if (open.empty() || open.back() != name) return name + " is closed and was not open";
      open.pop_back();
    } else if (name != "meta" && name != "br") {
      open.push_back(name);
    }
    at = end;
    if (!closes && name == "style") at = page.find("</style>", end);
  }
  return open.empty() ? "" : open.back() + " is not closed";
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Finding finding_with(std::string words) {
  Finding finding;
  finding.cause = Cause::kLabelOutOfRange;
  finding.certainty = Certainty::kProven;
  finding.summary = std::move(words);
  return finding;
}

Report report_of(Finding finding) { return {Command::kRun, Verdict::kFault, {std::move(finding)}, {}}; }

TEST(Html, EveryCaseIsAWholePageWithoutScript) {
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TRAPLINE_CASES)) {
    if (entry.path().extension() != ".json") continue;
    const auto report = parse_report(read(entry.path()));
    ASSERT_TRUE(report) << entry.path();
    const std::string page = render_html(*report, {});
    EXPECT_EQ(problem_of(page), "") << entry.path();
    EXPECT_EQ(count(page, "Content-Security-Policy"), 1U);
    EXPECT_LT(page.size(), std::size_t{1} << 20U);
    for (const Finding& finding : report->findings) {
      EXPECT_EQ(problem_of(render_html_finding(finding, {})), "") << entry.path();
    }
    ++cases;
  }
  EXPECT_GT(cases, 10U);
}

TEST(Html, NothingThatAProgramWroteBecomesMarkup) {
  const std::string evil =
      "</style><script>alert(1)</script>\"' onload=x <img src=x> &lt; \x1b[31m \xff \u202e ]]>";
  Finding finding = finding_with(evil);
  finding.op = finding.argument = evil;
  finding.fix = {evil, "`" + evil + "`", "one ` alone"};
  finding.origin = Frame{evil, 3, evil, evil, true, 2, 9, 0, {evil}, {evil}};
  finding.stack = {*finding.origin};
  finding.valid = Valid{evil, Scalar(std::int64_t{0}), Scalar(std::int64_t{9}), {}};
  finding.element = Element{{1}, Scalar(std::int64_t{12}), 1, 4, {}, {}, Variable{evil, {1}}, {0, 1}, {}};
  finding.layer = Layer{evil, evil, evil, 1, 2, evil};
  finding.evidence = {{evil, 1, evil}};
  finding.history = {{evil, {evil}, evil}};
  finding.process = Process{5, 1, evil, evil};
  Report report = report_of(finding);
  report.findings.push_back(finding);
  report.notes = {evil};
  const std::string page = render_html(report, {});
  EXPECT_EQ(problem_of(page), "");
  EXPECT_EQ(count(page, "<script"), 0U);
  EXPECT_EQ(count(page, "<img"), 0U);
  EXPECT_EQ(count(page, "\x1b"), 0U);
  EXPECT_EQ(count(page, "\u202e"), 0U);
  EXPECT_EQ(count(page, "</style>"), 1U);
  EXPECT_GT(count(page, "&lt;/style&gt;&lt;script&gt;"), 5U);
}

TEST(Html, TheOperationIsMarkedInItsLineAndTheIndentOfAllLinesLeftOut) {
  Finding finding = finding_with("words");
  finding.origin = Frame{"train.py",
                         41,
                         "step",
                         "    l\u00f6ss = criterion(a < b)",
                         true,
                         12,
                         28,
                         0,
                         {"  for x in y:"},
                         {"    loss.backward()"}};
  const std::string page = render_html(report_of(finding), {});
  EXPECT_EQ(count(page, "<code>  l\u00f6ss = <mark>criterion(a &lt; b)</mark></code>"), 1U);
  EXPECT_EQ(count(page, "<span class=\"number\">40</span><code>for x in y:</code>"), 1U);
  EXPECT_EQ(count(page, "<span class=\"number\">42</span><code>  loss.backward()</code>"), 1U);
}

TEST(Html, TheStripShowsWhereTheBadElementsLie) {
  Finding finding = finding_with("words");
  finding.argument = "target";
  finding.element = Element{{0}, {}, 9, 1000, {}, {}, {}, {0, 0, 9, 0}, {}};
  const std::string picture = html::strip_of(finding).code();
  EXPECT_EQ(count(picture, "class=\"cell\""), 4U);
  EXPECT_EQ(count(picture, "class=\"bad\""), 1U);
  EXPECT_EQ(count(picture, "elements 500 to 749: 9 bad"), 1U);
  EXPECT_EQ(count(picture, "element 999"), 1U);
}

TEST(Html, TheHistogramTellsWhatIsOutsideOfTheRange) {
  Finding finding = finding_with("words");
  finding.valid = Valid{"[0, 4) or -100", Scalar(std::int64_t{0}), Scalar(std::int64_t{3}), {-100}};
  finding.element = Element{{0},
                            {},
                            2,
                            9,
                            Scalar(std::int64_t{-7}),
                            Scalar(std::int64_t{8}),
                            {},
                            {},
                            Histogram{0, 4, {1, 0, 2, 1}, 1, 2, 3, 0}};
  const std::string picture = html::histogram_of(finding).code();
  EXPECT_EQ(count(picture, "class=\"valid\""), 4U);
  EXPECT_EQ(count(picture, "class=\"bar\""), 3U + 1U);  // and what is valid all the same
  EXPECT_EQ(count(picture, "class=\"bad\""), 2U);
  EXPECT_EQ(count(picture, "below, min -7"), 3U);
  EXPECT_EQ(count(picture, "also valid: 3"), 2U);
  EXPECT_EQ(count(picture, "NaN"), 0U);
}

TEST(Html, AHistogramThatMakesNoSenseIsLeftOut) {
  Finding finding = finding_with("words");
  for (const Histogram& histogram :
       {Histogram{}, Histogram{1, 1, {3}}, Histogram{0, 1, {0, 0}}, Histogram{0, 1, {-3}}}) {
    finding.element = Element{{}, {}, {}, {}, {}, {}, {}, {}, histogram};
    EXPECT_TRUE(html::histogram_of(finding).empty());
  }
  finding.element = Element{{}, {}, {}, 2, {}, {}, {}, {1, 2, 3, 4}, {}};  // more cells than elements
  EXPECT_TRUE(html::strip_of(finding).empty());
}

TEST(Html, EachRankOfAJobHasALane) {
  Finding root = finding_with("a label is outside");
  root.process = Process{5, {}, {}, {}, 8};
  Finding waits = finding_with("ranks 0-4, 6, 7 waited for rank 5");
  waits.cause = Cause::kPeerFailure;
  waits.role = Role::kConsequence;
  waits.process.emplace().ranks = {0, 1, 2, 3, 4, 6, 7};
  Report report = report_of(root);
  EXPECT_EQ(count(html::ranks_of(report, {}).code(), "nothing is known of it"), 2U * 7U);
  report.findings.push_back(waits);
  const std::string lanes = html::ranks_of(report, {}).code();
  EXPECT_EQ(count(lanes, "<tr"), 8U);
  EXPECT_EQ(count(lanes, "<td>waited for rank 5</td>"), 7U);
  EXPECT_EQ(count(lanes, "class=\"root\""), 1U);
  root.process.reset();
  EXPECT_TRUE(html::ranks_of(report_of(root), {}).empty());
}

TEST(Html, AHugeReportStaysSmall) {
  Finding finding = finding_with(std::string(1 << 20, 'x'));
  finding.evidence.assign(4096, {"file", 1, std::string(3000, 'y')});
  Report report = report_of(finding);
  for (int i = 0; i < 300; ++i) {
    report.findings.push_back(finding_with("number " + std::to_string(i)));
  }
  EXPECT_LT(render_html(report, {}).size(), std::size_t{1} << 20U);
}

TEST(Html, TheLastStepsAreTold) {
  Finding finding = finding_with("words");
  finding.last_steps = {{401, Scalar(0.5), Scalar(1.25)},
                        {402, Scalar(0.6), {}},
                        {403, Scalar(7.0), Scalar(30000.0)},
                        {404, {}, Scalar(HUGE_VAL)}};
  const std::string page = render_html(report_of(finding), {});
  EXPECT_EQ(problem_of(page), "");
  EXPECT_EQ(count(page, "loss: 0.5 -&gt; 0.6 -&gt; 7 over steps 401-403"), 1U);
  EXPECT_EQ(count(page, "gradient norm: 1.25 -&gt; 3e+04 -&gt; inf over steps 401-404"), 1U);
}

TEST(Html, TheLastStepsAreDrawn) {
  Finding finding = finding_with("words");
  finding.last_steps = {{401, Scalar(2.0), Scalar(1.0)},
                        {402, Scalar(-2.0), {}},
                        {403, Scalar(0.0), Scalar(10000.0)},
                        {404, Scalar(std::nan("")), Scalar(HUGE_VAL)}};
  const std::string page = render_html(report_of(finding), {});
  EXPECT_EQ(problem_of(page), "");
  // Losses below zero: evenly; 0 is in the middle.
  EXPECT_EQ(count(page, R"(height="53"><title>step 403: 0</title>)"), 1U);
  EXPECT_EQ(count(page, R"(height="6"><title>step 402: -2</title>)"), 1U);
  // Norms far apart: by logarithm. What is not finite is red and as high as the picture.
  EXPECT_EQ(count(page, "gradient norm of the last steps (heights by logarithm)"), 1U);
  EXPECT_EQ(count(page, R"(height="100"><title>step 403: 1e+04</title>)"), 1U);
  EXPECT_EQ(
      count(page, R"(<rect class="bad" x="31" y="0" width="8" height="100"><title>step 404: nan</title>)"),
      1U);
  EXPECT_EQ(count(page, "<title>step 404: inf</title>"), 1U);
  const std::string cell = render_html_finding(finding, {});
  EXPECT_EQ(count(cell, "gradient norm of the last steps"), 2U);  // the caption, and for those who hear it
}

TEST(Html, StepsOfOneNumberOrNoneAreNotDrawn) {
  Finding finding = finding_with("words");
  finding.last_steps = {{1, Scalar(2.0), Scalar(std::nan(""))}, {2, {}, Scalar(HUGE_VAL)}};
  EXPECT_EQ(count(render_html(report_of(finding), {}), "of the last steps"), 0U);
  finding.last_steps = {{1, Scalar(2.0), {}}, {2, Scalar(2.0), {}}};
  EXPECT_EQ(count(render_html(report_of(finding), {}), R"(height="50")"), 2U);
}

}  // namespace
}  // namespace trapline
