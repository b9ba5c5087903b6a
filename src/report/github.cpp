// Workflow commands of GitHub Actions: annotations at the lines of a pull request. Escaped as actions/toolkit
// does (packages/core/src/command.ts), which is what the runner undoes (actions/runner, ActionCommand.cs).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/details.hpp"
#include "report/machines.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMaxFindings = 50;  // of a job GitHub shows no more

std::string escaped(std::string_view text, bool is_property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','));
    if (special) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

class Properties {
 public:
  void add(std::string_view name, const std::string& value) {
    if (!value.empty())
      text_ += fmt::format("{}{}={}", text_.empty() ? " " : ",", name, escaped(value, true));
  }
  void add(std::string_view name, std::int64_t value) {
    if (value > 0) add(name, std::to_string(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string command(std::string_view level, const Properties& properties, std::string_view message) {
  return fmt::format("::{}{}::{}\n", level, properties.text(), escaped(message, false));
}

std::string line_of(const Finding& finding, const Reading& reading, const Style& style) {
  Properties properties;
  const auto place = shown_at(finding, reading.command);
  if (const auto spot = place ? spot_of(*place, style) : std::nullopt) {
    properties.add("file", line_for_people(spot->path));
    properties.add("line", spot->line);
    properties.add("endLine", spot->line);
    properties.add("col", spot->column);
    properties.add("endColumn", spot->end_column);
  }
  const CauseInfo& cause = info(headline_cause(finding));
  properties.add("title", fmt::format("{}: {}", cause.code, cause.title));
  return command(finding.role == Role::kConsequence ? "warning" : "error", properties,
                 fmt::format("{}", fmt::join(lines_for_people(finding, reading), "\n")));
}

}  // namespace

std::string render_github(const Report& report, const Style& style) {
  const Reading reading = reading_of(report, style.directory);
  Properties ours;
  ours.add("title", "trapline");
  std::string out;
  const std::size_t shown = std::min(report.findings.size(), kMaxFindings);
  for (std::size_t i = 0; i < shown; ++i) out += line_of(report.findings[i], reading, style);
  if (shown < report.findings.size()) {
    out += command("notice", ours, fmt::format("{} more findings", report.findings.size() - shown));
  }
  if (report.findings.empty() && report.verdict != Verdict::kClean) {
    out += command("warning", ours, sentence_without_findings(report));
  }
  for (const std::string& note : report.notes) out += command("notice", ours, line_for_people(note));
  return out;
}

}  // namespace trapline
