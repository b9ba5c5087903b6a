// Findings as the caller's text, and as files of the report folder.
#include <pthread.h>

#include <exception>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "capi/text.hpp"
#include "diagnose/bare.hpp"
#include "jsonio/dump.hpp"
#include "report/folder.hpp"
#include "report/html/page.hpp"
#include "report/json.hpp"
#include "report/lost_mark.hpp"
#include "report/style.hpp"
#include "report/text.hpp"
#include "trapline/capi.h"

namespace {

using nlohmann::json;
using trapline::copy;
using trapline::given;

// The findings that this process has written, of one folder: a process has one, and a test several.
struct Written {
  std::mutex lock;
  std::string folder;
  int findings = 0;
};

// Leaked: threads may write while the process ends.
Written* const g_written = new Written;

// A forked child numbers its own findings, and must not wait for a thread that it does not have. What the
// state held is left to the parent's memory.
[[maybe_unused]] const int g_watched = ::pthread_atfork(nullptr, nullptr, [] { new (g_written) Written; });

using trapline::jsonio::dump;

int answer(const trapline::Result<std::string>& path, char** text) {
  *text = copy(path ? *path : path.error().line());
  return path ? TRAPLINE_FILE_WRITTEN : TRAPLINE_FILE_FAILED;
}

int failed(const char* why, char** text) {
  *text = copy(why);
  return TRAPLINE_FILE_FAILED;
}

// A finding is in no file; the report of the run is not to be clean without it.
int lost(const char* folder, const char* why, char** text) {
  try {
    trapline::mark_lost(given(folder));
  } catch (const std::exception&) {  // no memory for the name of a file
  }
  return failed(why, text);
}

// A finding as JSON, written by `render` for the terminal or file behind the descriptor.
template <class Render>
char* rendered(const char* finding_json, int descriptor, Render render) {
  try {
    const json parsed = json::parse(given(finding_json), nullptr, /*allow_exceptions=*/false);
    auto finding = trapline::finding_from_json(parsed);
    if (!finding) return nullptr;
    const auto style =
        trapline::resolve_style(trapline::ColorChoice::kAuto, trapline::detect_terminal(descriptor));
    return copy(render(std::move(finding).value(), style));
  } catch (const std::exception&) {
    return nullptr;
  }
}

// What a finding says in a few hundred bytes: a limit on the size of files, or the last blocks of a disk, may
// take it.
json in_short(const json& finding) {
  json out = json::object();
  for (const char* key : {"code", "cause", "certainty", "role", "summary", "op", "process"}) {
    if (finding.contains(key)) out[key] = finding[key];
  }
  const json fix = finding.value("fix", json::array());
  out["fix"] = fix.is_array() && !fix.empty() ? json::array({fix.front()}) : json::array();
  const json origin = finding.value("origin", json());
  for (const char* key : {"file", "line", "user"}) {
    if (origin.is_object() && origin.contains(key)) out["origin"][key] = origin[key];
  }
  return out;
}

std::string as_report(json finding, json notes) {
  return dump(trapline::envelope(trapline::Command::kRun, trapline::Verdict::kFault,
                                 json::array({std::move(finding)}), std::move(notes)));
}

constexpr const char* kNoMemory = "cannot write the report: out of memory: free some memory and run again";

}  // namespace

extern "C" {

char* trapline_render(const char* finding_json, int descriptor) {
  return rendered(finding_json, descriptor, [](trapline::Finding finding, const trapline::Style& style) {
    trapline::Report report;
    report.command = trapline::Command::kRun;
    report.verdict = trapline::Verdict::kFault;
    report.findings.push_back(std::move(finding));
    return trapline::render_text(report, style);
  });
}

char* trapline_render_html(const char* finding_json) {
  return rendered(finding_json, -1, trapline::render_html_finding);
}

int trapline_bare_sentence(const char* contract, const trapline_scan* scan, char* text, size_t size) {
  try {
    return static_cast<int>(trapline::diagnose::bare_sentence(given(contract), scan, {text, size}));
  } catch (const std::exception&) {  // the table of contracts could not be made
    if (size > 0) text[0] = '\0';
    return 0;
  }
}

char* trapline_bare_finding(const char* contract, const trapline_scan* scan, const char* why) {
  try {
    return copy(dump(to_json(trapline::diagnose::bare_finding(given(contract), scan, given(why)))));
  } catch (const std::exception&) {
    return nullptr;
  }
}

int trapline_findings_written(const char* folder) {
  try {
    const std::scoped_lock locked(g_written->lock);
    return g_written->folder == given(folder) ? g_written->findings : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

int trapline_write_finding(const char* folder, const char* finding, const char* notes, int always,
                           char** text) {
  *text = nullptr;
  try {
    json found = json::parse(given(finding), nullptr, /*allow_exceptions=*/false);
    json noted = json::parse(notes == nullptr ? "[]" : notes, nullptr, /*allow_exceptions=*/false);
    if (!found.is_object())
      return lost(folder, "cannot write the report: this is not a finding: pass a JSON object", text);
    if (!noted.is_array()) noted = json::array();
    const json in_few_words = in_short(found);
    const std::string report = as_report(std::move(found), std::move(noted));
    const std::scoped_lock locked(g_written->lock);
    if (g_written->folder != given(folder)) {
      g_written->folder = given(folder);
      g_written->findings = 0;
    }
    if (g_written->findings >= TRAPLINE_MAX_FINDINGS && always == 0) return TRAPLINE_FILE_ENOUGH;
    const std::string name = trapline::folder_file_name("finding", g_written->findings);
    auto path = trapline::give_to_run(g_written->folder, name, report);
    if (!path) {
      auto shorter = trapline::give_to_run(
          g_written->folder, name,
          as_report(in_few_words, json::array({"the finding is shortened: in full it could not be written: " +
                                               path.error().why})));
      if (shorter) path = std::move(shorter);
    }
    if (!path) return lost(folder, path.error().line().c_str(), text);
    ++g_written->findings;
    return answer(path, text);
  } catch (const std::exception&) {
    return lost(folder, kNoMemory, text);
  }
}

int trapline_write_file(const char* folder, const char* kind, const char* content, char** text) {
  *text = nullptr;
  try {
    const std::string into(given(folder));
    if (given(kind) == "guard") {
      json marker = json::parse(given(content), nullptr, /*allow_exceptions=*/false);
      if (!marker.is_object()) marker = json::object();
      marker.erase("lost");
      return answer(trapline::write_guard_marker(into, dump(marker)), text);
    }
    return answer(trapline::give_to_run(into, trapline::folder_file_name(given(kind)), given(content)), text);
  } catch (const std::exception&) {
    return failed(kNoMemory, text);
  }
}

}  // extern "C"
