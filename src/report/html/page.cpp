#include "report/html/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "core/version.hpp"
#include "jsonio/dump.hpp"
#include "report/details.hpp"
#include "report/html/markup.hpp"
#include "report/html/pictures.hpp"
#include "report/json.hpp"
#include "report/sentences.hpp"
#include "report/utf8.hpp"

namespace trapline {
namespace html {
namespace {

constexpr std::size_t kMaxText = 4000;        // bytes of one piece of evidence
constexpr std::size_t kMaxEvidence = 200;     // pieces of a finding
constexpr std::size_t kMaxOthers = 100;       // findings that are written out besides the first
constexpr std::size_t kMaxJson = 128 << 10U;  // bytes

// Scripts, pictures, fonts, frames and connections: none. The style is in the page.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

Html cut(std::string_view words) {
  if (words.size() <= kMaxText) return text(words);
  return text(cut_utf8(words, kMaxText)) + literal("\u2026");
}

// A sentence of a report: what it puts between backquotes is code.
Html prose(std::string_view words) {
  if (words.size() > kMaxText) return cut(words);
  Html out;
  while (!words.empty()) {
    const std::size_t open = words.find('`');
    const std::size_t close = open == std::string_view::npos ? open : words.find('`', open + 1);
    if (close == std::string_view::npos) break;
    out += text(words.substr(0, open)) + tag("code", text(words.substr(open + 1, close - open - 1)));
    words.remove_prefix(close + 1);
  }
  return out + text(words);
}

Html source_line(std::int64_t number, const Html& code, const char* kind) {
  return tag("span", {{"class", kind}},
             tag("span", {{"class", "number"}}, text(std::to_string(number))) + tag("code", code));
}

// The byte at which a line's character begins that is 1-based number `column`.
std::size_t offset_of(std::string_view line, std::int64_t column) {
  std::size_t at = 0;
  for (std::int64_t i = 1; i < column && at < line.size(); ++i) at += decode_utf8(line, at).length;
  return std::min(at, line.size());
}

// The origin's own line without the first `indent` bytes, which are white space, and the operation marked.
Html hit(const Frame& frame, std::size_t indent) {
  const std::string_view code = frame.code;
  const std::size_t first = std::max(offset_of(code, frame.column), indent);
  const std::size_t last = offset_of(code, frame.end_column);
  if (frame.column <= 0 || last <= first) return cut(code.substr(indent));
  return cut(code.substr(indent, first - indent)) + tag("mark", cut(code.substr(first, last - first))) +
         cut(code.substr(last));
}

// The white space that all lines begin with.
std::size_t indent_of(const Frame& frame) {
  std::size_t indent = frame.code.find_first_not_of(' ');
  for (const auto* lines : {&frame.before, &frame.after}) {
    for (const std::string& line : *lines) indent = std::min(indent, line.find_first_not_of(' '));
  }
  return indent == std::string::npos ? 0 : indent;
}

Html source_of(const Frame& frame) {
  if (frame.code.empty()) return {};
  const std::size_t indent = indent_of(frame);
  Html lines;
  const auto near = [&](std::int64_t number, std::string_view line) {
    lines += source_line(number, cut(line.substr(std::min(indent, line.size()))), "near");
  };
  auto number = frame.line - static_cast<std::int64_t>(frame.before.size());
  for (const std::string& line : frame.before) near(number++, line);
  lines += source_line(frame.line, hit(frame, indent), "here");
  number = frame.line;
  for (const std::string& line : frame.after) near(++number, line);
  return tag("pre", {{"class", "source"}, {"tabindex", "0"}}, lines);
}

Html folded(const char* title, const Html& content) {
  if (content.empty()) return {};
  return tag("details", tag("summary", literal(title)) + content);
}

Html stack_of(const Finding& finding, std::string_view directory) {
  Html items;
  for (const Frame& frame : finding.stack) {
    const auto start = std::min(frame.code.find_first_not_of(" \t"), frame.code.size());
    Html item = text(place_text(frame, directory));
    if (start < frame.code.size()) item += literal("<br>") + tag("code", cut(frame.code.substr(start)));
    items += tag("li", {{"class", frame.user.value_or(true) ? "user" : "library"}}, item);
  }
  return items.empty() ? items : tag("ol", {{"class", "stack"}}, items);
}

Html operations_of(const Finding& finding) {
  Html rows;
  for (const Operation& operation : finding.history) {
    Html args;
    for (const std::string& argument : operation.args) args += tag("li", cut(argument));
    rows += tag("tr", tag("td", tag("code", cut(operation.op))) + tag("td", tag("ul", args)) +
                          tag("td", cut(operation.where)));
  }
  if (rows.empty()) return {};
  return tag(
      "div", {{"class", "wide"}, {"tabindex", "0"}},
      tag("table", literal("<thead><tr><th scope=\"col\">operation</th><th scope=\"col\">arguments</th>"
                           "<th scope=\"col\">at</th></tr></thead>") +
                       tag("tbody", rows)));
}

Html last_steps_of(const Finding& finding) {
  Html items;
  for (const std::string& course : last_steps_texts(finding)) items += tag("li", text(course));
  return items.empty() ? items : tag("ul", items);
}

Html evidence_of(const Finding& finding) {
  Html items;
  std::size_t count = 0;
  for (const Evidence& evidence : finding.evidence) {
    if (count++ == kMaxEvidence) break;
    const std::string line = evidence.line ? fmt::format(":{}", *evidence.line) : "";
    Html item = text(evidence.source + line);
    if (!evidence.text.empty()) item += literal("<br>") + tag("code", cut(evidence.text));
    items += tag("li", item);
  }
  if (items.empty()) return {};
  if (finding.evidence.size() > kMaxEvidence) {
    items += tag("li", text(fmt::format("and {} more", finding.evidence.size() - kMaxEvidence)));
  }
  return tag("ul", {{"class", "evidence"}}, items);
}

struct Shown {
  Reading reading;
  std::string_view heading;  // "h1"
  bool is_compact = false;   // in a notebook
};

Html headline(const Finding& finding, const Shown& shown) {
  return tag(shown.heading, tag("span", {{"class", "label"}}, text(label_of(finding, shown.reading))) +
                                literal(" ") + prose(sentence_of(finding)));
}

Html facts_of(const Finding& finding, const Shown& shown) {
  Html facts, sentences;
  for (const Detail& detail : details_of(finding, shown.reading)) {
    if (detail.label.empty()) {
      sentences += tag("p", {{"class", "doubt"}}, cut(detail.text));
    } else {
      facts += tag("div", tag("dt", text(detail.label)) + tag("dd", cut(detail.text)));
    }
  }
  return (facts.empty() ? facts : tag("dl", facts)) + sentences;
}

Html help_of(const Finding& finding) {
  Html items;
  for (const std::string& fix : finding.fix) items += tag("li", prose(fix));
  return items.empty() ? items
                       : tag("div", {{"class", "help"}}, tag("b", literal("What to do")) + tag("ul", items));
}

Html article(const Finding& finding, const Shown& shown) {
  const Frame place = place_of(finding, shown.reading.command).value_or(Frame{});
  Html body = headline(finding, shown);
  if (!place.file.empty()) {
    body += tag("p", {{"class", "place"}}, text(place_text(place, shown.reading.directory)));
  }
  body += source_of(place);
  body += strip_of(finding);
  if (!shown.is_compact) body += histogram_of(finding) + courses_of(finding);
  body += facts_of(finding, shown);
  body += help_of(finding);
  if (shown.is_compact) body += folded("Values", histogram_of(finding));
  body += folded("Last steps", (shown.is_compact ? courses_of(finding) : Html()) + last_steps_of(finding));
  body += folded("Last operations, the newest last", operations_of(finding));
  body += folded("Stack, outermost first", stack_of(finding, shown.reading.directory));
  if (!shown.is_compact) body += folded("Evidence", evidence_of(finding));
  const auto code = info(headline_cause(finding)).code;
  body += tag("p", {{"class", "more"}},
              literal("For more: ") + tag("code", text(fmt::format("trapline why {}", code))));
  return tag("article", {{"class", finding.role == Role::kRoot ? "root" : "follows"}}, body);
}

Html others(const Report& report, const Shown& shown) {
  Html items;
  std::size_t count = 0;
  for (const Other& other : others_of(report, shown.reading.directory)) {
    if (count++ == kMaxOthers) {
      items += tag("li", literal("and more: the JSON report has them all"));
      break;
    }
    items += tag("li",
                 tag("details", tag("summary", tag("b", literal(other.is_consequence ? "then: " : "also: ")) +
                                                   prose(other.text)) +
                                    article(*other.first, {shown.reading, "h3", false})));
  }
  if (items.empty()) return {};
  return tag("section", {{"class", "others"}}, tag("h2", literal("What else was found")) + tag("ol", items));
}

Html notes(const Report& report) {
  Html items;
  for (const std::string& note : report.notes) items += tag("li", prose(note));
  if (items.empty()) return {};
  return tag("section", {{"class", "notes"}}, tag("h2", literal("Notes")) + tag("ul", items));
}

Html raw(const Report& report) {
  const std::string json = jsonio::dump(to_json(report), 1);
  if (json.size() > kMaxJson) return {};
  Html lines;
  for (std::size_t at = 0; at < json.size();) {  // by lines: text() writes line breaks out
    const std::size_t end = std::min(json.find('\n', at), json.size());
    lines += text(std::string_view(json).substr(at, end - at)) + literal("\n");
    at = end + 1;
  }
  return folded("This report as JSON", tag("pre", {{"class", "raw"}, {"tabindex", "0"}}, lines));
}

std::string page(const Report& report, const Style& style) {
  const Shown shown{reading_of(report, style.directory, style.verbose), "h1"};
  Html main;
  std::string title(sentence_without_findings(report));
  if (report.findings.empty()) {
    main += tag("h1", literal(sentence_without_findings(report)));
  } else {
    const Finding& root = report.findings.front();
    title = label_of(root, shown.reading) + " " + std::string(cut_utf8(sentence_of(root), 200));
    main += article(root, shown);
    main += ranks_of(report, style.directory);
    main += others(report, shown);
  }
  main += notes(report);
  main += raw(report);
  const Html head = literal(
                        "<meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"
                        "<meta name=\"color-scheme\" content=\"light dark\">") +
                    tag("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", kPolicy}}) +
                    tag("title", text(title)) + tag("style", literal(kCss));
  const Html body = tag("main", main) + tag("footer", tag("p", text(fmt::format("Trapline {}", kVersion))));
  return "<!doctype html>\n" +
         tag("html", {{"lang", "en"}},
             tag("head", head) + tag("body", {{"class", "trapline trapline-page"}}, body))
             .code() +
         "\n";
}

}  // namespace
}  // namespace html

std::string render_html(const Report& report, const Style& style) { return html::page(report, style); }

std::string render_html_finding(const Finding& finding, const Style& style) {
  const html::Shown shown{{Command::kRun, false, style.directory, false}, "h4", true};
  return html::tag("div", {{"class", "trapline trapline-cell"}},
                   html::tag("style", html::literal(html::kCss)) + html::article(finding, shown))
      .code();
}

}  // namespace trapline
