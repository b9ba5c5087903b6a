#include "report/writer.hpp"

#include <algorithm>
#include <array>

#include "jsonio/dump.hpp"
#include "report/html/page.hpp"
#include "report/json.hpp"
#include "report/machines.hpp"
#include "report/text.hpp"

namespace trapline {
namespace {

constexpr int kIndent = 2;

std::string render_json(const Report& report, const Style&) {
  return jsonio::dump(to_json(report), kIndent) + "\n";
}

constexpr auto kFormats = std::to_array<Format>({
    {"text", "for people", render_text},
    {"json", "the whole report: docs/finding.schema.json", render_json},
    {"html", "one page for people, with pictures", render_html},
    {"jsonl", "JSON Lines: one finding a line, as it becomes known", render_json_lines, stream_json_lines},
    {"sarif", "SARIF 2.1.0: GitHub code scanning, editors", render_sarif},
    {"github", "annotations of GitHub Actions", render_github},
    {"gitlab", "GitLab's Code Quality", render_gitlab},
    {"junit", "JUnit's XML: Jenkins, GitLab", render_junit},
});

}  // namespace

std::span<const Format> formats_of_reports() { return kFormats; }

const Format* find_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &Format::name);
  return found == kFormats.end() ? nullptr : &*found;
}

}  // namespace trapline
