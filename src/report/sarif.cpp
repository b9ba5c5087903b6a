// SARIF 2.1.0 (OASIS), as GitHub code scanning, Azure DevOps and the SARIF viewers of editors read it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "core/version.hpp"
#include "jsonio/dump.hpp"
#include "report/details.hpp"
#include "report/json.hpp"
#include "report/machines.hpp"
#include "report/names.hpp"
#include "report/sentences.hpp"
#include "report/utf8.hpp"

namespace trapline {
namespace {

using nlohmann::json;

constexpr const char* kSchema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
constexpr const char* kRoot = "%SRCROOT%";
constexpr std::size_t kMaxFrames = 256;   // of one stack
constexpr std::size_t kMaxRelated = 100;  // places beside the finding's own

// Each byte of a path that may not stand in a URI as %XX; a path need not be UTF-8.
std::string uri_of(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 0x80 && (std::isalnum(byte) != 0 || c == '/' || c == '-' || c == '.' || c == '_' || c == '~');
    if (plain) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

// A plain message (3.11): braces would be placeholders, and [text](target) a link.
json message(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '{' || c == '}') out.push_back(c);
    if (c == '(' && out.ends_with(']')) out.push_back(' ');
    out.push_back(c);
  }
  return {{"text", out.empty() ? "-" : out}};
}

json location_of(const Frame& frame, const Style& style, std::string_view text = {}) {
  json location = json::object();
  if (const auto spot = spot_of(frame, style)) {
    json& physical = location["physicalLocation"];
    if (spot->inside) {
      physical["artifactLocation"] = {{"uri", uri_of(spot->path)}, {"uriBaseId", kRoot}};
    } else {
      const char* scheme = spot->path.starts_with('/') ? "file://" : "";
      physical["artifactLocation"] = {{"uri", scheme + uri_of(spot->path)}};
    }
    if (spot->line > 0) {
      json& region = physical["region"] = {{"startLine", spot->line}};
      if (spot->column > 0) region["startColumn"] = spot->column;
      if (spot->end_column >= spot->column && spot->column > 0) region["endColumn"] = spot->end_column;
      if (!frame.code.empty()) region["snippet"] = {{"text", line_for_people(frame.code)}};
    }
  }
  if (!frame.function.empty()) {
    location["logicalLocations"] = {
        {{"fullyQualifiedName", line_for_people(frame.function)}, {"kind", "function"}}};
  } else if (location.empty()) {  // a cell, or standard input
    location["logicalLocations"] = {{{"fullyQualifiedName", line_for_people(place_text(frame))}}};
  }
  if (!text.empty()) location["message"] = message(line_for_people(text));
  return location;
}

// The rule of a cause: its title, and its page.
json rule_of(const CauseInfo& cause, const Style& style) {
  std::string name;
  bool upper = true;  // label_out_of_range as LabelOutOfRange
  for (const char c : cause.slug) {
    if (c != '_') name.push_back(upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c);
    upper = c == '_';
  }
  const std::string command = fmt::format("trapline why {}", cause.code);
  json rule = {
      {"id", cause.code},
      {"name", name},
      {"shortDescription", {{"text", cause.title}}},
      {"fullDescription", {{"text", fmt::format("{}. `{}` prints its page.", cause.title, command)}}},
      {"help", {{"text", fmt::format("{} prints what it means and how to fix it", command)}}},
      {"defaultConfiguration", {{"level", "error"}}},
      {"properties", {{"tags", {"pytorch", "correctness"}}}}};
  if (const std::string page = style.page ? style.page(cause.cause) : std::string(); !page.empty()) {
    rule["help"]["markdown"] = page;
  }
  return rule;
}

class SarifLog {
 public:
  SarifLog(const Report& report, const Style& style)
      : report_(report),
        style_(style),
        reading_(reading_of(report, style.directory)),
        fingerprints_(fingerprints_of(report, style)) {}

  json write() {
    json results = json::array();
    for (std::size_t i = 0; i < report_.findings.size(); ++i) results.push_back(result(i));
    json run = {
        {"tool",
         {{"driver",
           {{"name", "Trapline"}, {"version", kVersion}, {"semanticVersion", kVersion}, {"rules", rules_}}}}},
        {"columnKind", "unicodeCodePoints"},
        {"automationDetails", {{"id", fmt::format("trapline/{}/", name_of(report_.command))}}},
        {"invocations", json::array({invocation()})},
        {"results", std::move(results)},
        {"properties", {{"command", name_of(report_.command)}, {"verdict", name_of(report_.verdict)}}}};
    const std::string& root = style_.repository.empty() ? style_.directory : style_.repository;
    if (root.starts_with('/')) {
      run["originalUriBaseIds"] = {
          {kRoot, {{"uri", "file://" + uri_of(root) + (root.ends_with('/') ? "" : "/")}}}};
    }
    return {{"$schema", kSchema}, {"version", "2.1.0"}, {"runs", json::array({std::move(run)})}};
  }

 private:
  std::size_t rule_index(const CauseInfo& cause) {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i]["id"] == cause.code) return i;
    }
    rules_.push_back(rule_of(cause, style_));
    return rules_.size() - 1;
  }

  json result(std::size_t index) {
    const Finding& finding = report_.findings[index];
    const CauseInfo& cause = info(headline_cause(finding));
    json out = {{"ruleId", cause.code},
                {"ruleIndex", rule_index(cause)},
                {"level", finding.role == Role::kConsequence ? "warning" : "error"},
                {"message", message(fmt::format("{}", fmt::join(lines_for_people(finding, reading_), "\n")))},
                {"partialFingerprints", {{"trapline/v1", fingerprints_[index]}}},
                {"properties", {{"finding", to_json(finding)}}}};
    if (const auto place = shown_at(finding, report_.command)) {
      out["locations"] = json::array({location_of(*place, style_)});
    } else if (const auto anywhere = place_of(finding, report_.command)) {
      out["locations"] = json::array({location_of(*anywhere, style_)});
    }
    add_stack(finding, out);
    add_related(finding, index == 0, out);
    return out;
  }

  // As the calls were made for the viewers that show code flows, newest first for those that show stacks.
  void add_stack(const Finding& finding, json& out) const {
    if (finding.stack.empty()) return;
    json steps = json::array(), frames = json::array();
    const std::size_t first = finding.stack.size() - std::min(finding.stack.size(), kMaxFrames);
    for (std::size_t i = first; i < finding.stack.size(); ++i) {
      const Frame& frame = finding.stack[i];
      json location =
          location_of(frame, style_, frame.function.empty() ? "called here" : "in " + frame.function);
      steps.push_back(
          {{"location", location}, {"importance", frame.user.value_or(true) ? "essential" : "unimportant"}});
      frames.insert(frames.begin(), json{{"location", std::move(location)}});
    }
    out["codeFlows"] = {{{"threadFlows", {{{"locations", std::move(steps)}}}}}};
    out["stacks"] = {{{"message", message("the calls that led to it")}, {"frames", std::move(frames)}}};
  }

  // Where it surfaced, what proves it, and what followed from the root.
  void add_related(const Finding& finding, bool is_root, json& out) const {
    json related = json::array();
    const auto add = [&](const Frame& frame, std::string_view text) {
      if (related.size() >= kMaxRelated || !spot_of(frame, style_)) return;
      json location = location_of(frame, style_, text);
      location["id"] = related.size();
      related.push_back(std::move(location));
    };
    if (finding.surfaced) add(*finding.surfaced, "it surfaced here");
    const bool in_files = report_.command == Command::kExplain || report_.command == Command::kCheck;
    for (const Evidence& seen : finding.evidence) {
      if (in_files && seen.line) add({seen.source, *seen.line, "", "", {}, 0, 0}, seen.text);
    }
    if (is_root) {
      for (const Finding& other : report_.findings) {
        const auto place = shown_at(other, report_.command);
        if (other.role != Role::kConsequence || !place) continue;
        add(*place, fmt::format("then: [{}] {}", info(headline_cause(other)).code, sentence_of(other)));
      }
    }
    if (!related.empty()) out["relatedLocations"] = std::move(related);
  }

  json invocation() const {
    json notes = json::array();
    if (report_.findings.empty() && report_.verdict != Verdict::kClean) {
      notes.push_back({{"level", "error"}, {"message", message(sentence_without_findings(report_))}});
    }
    for (const std::string& note : report_.notes) {
      notes.push_back({{"level", "note"}, {"message", message(line_for_people(note))}});
    }
    return {{"executionSuccessful", report_.verdict != Verdict::kUnknown || !report_.findings.empty()},
            {"toolExecutionNotifications", std::move(notes)}};
  }

  const Report& report_;
  const Style& style_;
  Reading reading_;
  std::vector<std::string> fingerprints_;
  std::vector<json> rules_;
};

}  // namespace

std::string render_sarif(const Report& report, const Style& style) {
  constexpr int kIndent = 2;
  return jsonio::dump(SarifLog(report, style).write(), kIndent) + "\n";
}

}  // namespace trapline
