// JUnit's XML, as Jenkins, GitLab and GitHub's reporters read it: a column that was checked is a test. What
// ran a program or read logs is one test.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "report/details.hpp"
#include "report/machines.hpp"
#include "report/names.hpp"
#include "report/text.hpp"
#include "report/utf8.hpp"

namespace trapline {
namespace {

// Text or an attribute's value; what XML 1.0 does not allow becomes U+FFFD.
std::string xml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode_utf8(text, i);
    const char32_t c = point.value;
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {  // also of "]]>"
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      const bool allowed = c == '\n' || (c >= 0x20 && c != 0x7F && c != 0xFFFE && c != 0xFFFF);
      append_utf8(out, allowed ? c : U'\uFFFD');
    }
    i += point.length;
  }
  return out;
}

struct Test {
  std::string file, name;
  std::vector<Finding> findings;
};

class Suite {
 public:
  Suite(const Report& report, const Style& style) : report_(report), style_(style) {
    style_.color = false;
    style_.unicode = true;
  }

  std::string render() {
    collect();
    const auto failed = static_cast<std::size_t>(
        std::ranges::count_if(tests_, [](const Test& test) { return !test.findings.empty(); }));
    const bool is_unknown = report_.verdict == Verdict::kUnknown && failed == 0;
    if (tests_.empty() || is_unknown) tests_.push_back({"", std::string(name_of(report_.command)), {}});
    const std::string counts = fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="0")",
                                           tests_.size(), failed, is_unknown ? 1 : 0);
    const std::string name = fmt::format("trapline {}", name_of(report_.command));
    std::string out = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n  <testsuite name=\"{}\" {}>\n", counts,
        name, counts);
    for (const Test& test : tests_) out += case_of(test, name, is_unknown && &test == &tests_.back());
    if (!report_.notes.empty()) {
      std::string notes;
      for (const std::string& note : report_.notes) notes += "note: " + line_for_people(note) + "\n";
      out += fmt::format("    <system-out>{}</system-out>\n", xml(notes));
    }
    return out + "  </testsuite>\n</testsuites>\n";
  }

 private:
  // A program's run is one test with all its findings; of data every column is one.
  void collect() {
    if (report_.command != Command::kCheck) {
      if (!report_.findings.empty())
        tests_.push_back({"", std::string(name_of(report_.command)), report_.findings});
      return;
    }
    for (const CheckedColumn& column : report_.checked) test_of(column.file, column.column);
    for (const Finding& finding : report_.findings) {
      const std::string file = finding.evidence.empty() ? "" : finding.evidence.front().source;
      test_of(file, finding.argument).findings.push_back(finding);
    }
  }

  Test& test_of(const std::string& file, const std::string& name) {
    const auto [place, is_new] = index_.try_emplace({file, name}, tests_.size());
    if (is_new) tests_.push_back({file, name, {}});
    return tests_[place->second];
  }

  std::string case_of(const Test& test, const std::string& suite, bool is_error) const {
    std::string where;
    std::string file = test.file;
    const auto place =
        test.findings.empty() ? std::nullopt : shown_at(test.findings.front(), report_.command);
    if (const auto spot = place ? spot_of(*place, style_) : std::nullopt) {
      file = spot->path;
      if (spot->line > 0) where = fmt::format(" line=\"{}\"", spot->line);
    }
    if (!file.empty()) where = fmt::format(" file=\"{}\"", xml(line_for_people(file))) + where;
    std::string name = test.name;
    if (name.empty())
      name = test.findings.empty() ? "values" : std::string(info(headline_cause(test.findings.front())).slug);
    std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\"{}",
                                  xml(line_for_people(test.file.empty() ? suite : test.file)),
                                  xml(line_for_people(name)), where);
    if (is_error) {
      const std::string sentence(sentence_without_findings(report_));
      std::string text = sentence + "\n";
      for (const std::string& note : report_.notes) text += "note: " + line_for_people(note) + "\n";
      return out +
             fmt::format(">\n      <error message=\"{}\" type=\"unknown\">{}</error>\n    </testcase>\n",
                         xml(sentence), xml(text));
    }
    if (test.findings.empty()) return out + "/>\n";
    const Finding& first = test.findings.front();
    const Report part{report_.command, Verdict::kFault, test.findings, {}};
    return out + fmt::format(">\n      <failure message=\"{}\" type=\"{}\">{}</failure>\n    </testcase>\n",
                             xml(line_for_people(sentence_of(first))), info(headline_cause(first)).code,
                             xml(render_text(part, style_)));
  }

  const Report& report_;
  Style style_;
  std::vector<Test> tests_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
};

}  // namespace

std::string render_junit(const Report& report, const Style& style) { return Suite(report, style).render(); }

}  // namespace trapline
