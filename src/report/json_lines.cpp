// JSON Lines: one finding a line, for streams. docs/machines.md has the members.
#include <map>
#include <memory>

#include "jsonio/dump.hpp"
#include "report/json.hpp"
#include "report/machines.hpp"
#include "report/names.hpp"
#include "report/utf8.hpp"

namespace trapline {
namespace {

using nlohmann::json;

class Lines {
 public:
  explicit Lines(Style style) : style_(std::move(style)) {}

  std::string update(const Report& report, bool is_over) {
    const std::vector<std::string> fingerprints = fingerprints_of(report, style_);
    std::string out;
    for (std::size_t i = 0; i < report.findings.size(); ++i) {
      json line = to_json(report.findings[i]);
      line["type"] = "finding";
      line["fingerprint"] = fingerprints[i];
      // While more comes only what a reader would act upon is told again: not each further piece of evidence.
      const json key = is_over ? line : json{line["code"], line["certainty"], line["role"], line["summary"]};
      std::string& told = told_[fingerprints[i]];
      if (!is_over && told_short_[fingerprints[i]] == key.dump()) continue;
      std::string text = jsonio::dump(line) + "\n";
      if (text == told) continue;
      told_short_[fingerprints[i]] =
          json{line["code"], line["certainty"], line["role"], line["summary"]}.dump();
      told = text;
      out += text;
    }
    if (is_over) {
      json end = envelope(report.command, report.verdict, fingerprints, json::array());
      for (const std::string& note : report.notes) end["notes"].push_back(valid_utf8(note));
      end["type"] = "report";
      out += jsonio::dump(end) + "\n";
    }
    return out;
  }

 private:
  Style style_;
  std::map<std::string, std::string> told_, told_short_;  // by fingerprint
};

}  // namespace

std::function<std::string(const Report&, bool)> stream_json_lines(const Style& style) {
  return [lines = std::make_shared<Lines>(style)](const Report& report, bool is_over) {
    return lines->update(report, is_over);
  };
}

std::string render_json_lines(const Report& report, const Style& style) {
  return Lines(style).update(report, true);
}

}  // namespace trapline
