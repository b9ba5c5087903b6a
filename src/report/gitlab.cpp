// GitLab's Code Quality report: docs.gitlab.com, "Import code quality results from a CI/CD job". GitLab reads
// just these members, and leaves out entries without one of them.
#include <nlohmann/json.hpp>

#include "jsonio/dump.hpp"
#include "report/details.hpp"
#include "report/machines.hpp"
#include "report/names.hpp"

namespace trapline {
namespace {

using nlohmann::json;

constexpr const char* kNoFile = "(no file)";  // a path is required

std::string_view severity_of(const Finding& finding) {
  if (finding.role == Role::kConsequence) return "minor";
  return finding.certainty == Certainty::kProven ? "critical" : "major";
}

json entry(std::string_view name, const std::string& description, const std::string& fingerprint,
           std::string_view severity, const std::optional<Spot>& spot) {
  return {{"check_name", name},
          {"description", description},
          {"fingerprint", fingerprint},
          {"severity", severity},
          {"location",
           {{"path", spot ? line_for_people(spot->path) : kNoFile},
            {"lines", {{"begin", spot && spot->line > 0 ? spot->line : 1}}}}}};
}

}  // namespace

std::string render_gitlab(const Report& report, const Style& style) {
  constexpr int kIndent = 2;
  const Reading reading = reading_of(report, style.directory);
  const std::vector<std::string> fingerprints = fingerprints_of(report, style);
  json out = json::array();
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const Finding& finding = report.findings[i];
    const auto place = shown_at(finding, report.command);
    const CauseInfo& cause = info(headline_cause(finding));
    out.push_back(entry(cause.code, lines_for_people(finding, reading).front(), fingerprints[i],
                        severity_of(finding), place ? spot_of(*place, style) : std::nullopt));
  }
  // An empty list says that all is well.
  if (report.findings.empty() && report.verdict != Verdict::kClean) {
    std::string description(sentence_without_findings(report));
    for (const std::string& note : report.notes) description += "; " + line_for_people(note);
    out.push_back(entry("trapline", description,
                        std::string("trapline-") + std::string(name_of(report.command)), "major",
                        std::nullopt));
  }
  return jsonio::dump(out, kIndent) + "\n";
}

}  // namespace trapline
