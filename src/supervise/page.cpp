// The status page: page.html with its {{names}} filled in. Everything that comes from outside is escaped.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "report/utf8.hpp"
#include "supervise/board.hpp"
#include "supervise/page_text.hpp"

namespace trapline::supervise {
namespace {

constexpr std::size_t kShown = 10;  // incidents

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, seconds));
  if (seconds < 10) return fmt::format("{:.1f} s", std::max(0.0, seconds));
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", whole / 60);
  if (whole < 172800) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} days", whole / 86400);
}

std::string time_of(double unix_seconds) {
  const auto whole = static_cast<std::time_t>(unix_seconds);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(whole));
}

std::string figure(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
}

std::string figures(const Snapshot& now) {
  std::int64_t faults = 0;
  for (const auto& [code, times] : now.faults) faults += times;
  std::string out = figure("faults", std::to_string(faults)) + figure("starts", std::to_string(now.starts));
  out += figure("last time to ready", now.last_to_ready ? duration(*now.last_to_ready) : "–");
  out += figure("time not ready", duration(now.unready_seconds));
  out += figure("time poisoned", duration(now.poisoned_seconds));
  out += figure("requests refused", std::to_string(now.refused));
  out += figure("standby", !now.has_standby ? "none" : now.standby_ready ? "ready" : "starting");
  return out;
}

// Faults as marks on a line from the supervisor's start until now.
std::string timeline(const Snapshot& now, double until) {
  const double span = std::max(1.0, until - now.started);
  std::string out =
      "<svg viewBox=\"0 0 1000 40\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"when faults "
      "came\">"
      "<rect class=\"base\" x=\"0\" y=\"18\" width=\"1000\" height=\"4\"/>";
  for (const Incident& one : now.incidents) {
    const double at = std::clamp((one.when - now.started) / span, 0.0, 1.0) * 994;
    out += fmt::format("<rect class=\"bad\" x=\"{:.1f}\" y=\"4\" width=\"6\" height=\"32\"/>", at);
  }
  return out + "</svg>";
}

std::string article(const Incident& one) {
  std::string out =
      fmt::format("<article><p><b>{}</b><time>{}, start {}</time></p>\n",
                  one.code.empty() ? "no cause found" : escape(one.code), time_of(one.when), one.start);
  if (!one.summary.empty()) out += fmt::format("<p>{}</p>\n", escape(one.summary));
  if (!one.where.empty()) out += fmt::format("<p><code>{}</code></p>\n", escape(one.where));
  out += fmt::format("<p class=\"soft\">{}: {}{}</p></article>\n", escape(one.action), escape(one.reason),
                     one.to_ready ? fmt::format("; ready again after {}", duration(*one.to_ready)) : "");
  return out;
}

std::string articles(const Snapshot& now) {
  if (now.incidents.empty()) return "<p class=\"soft\">None so far.</p>";
  std::string out;
  std::size_t shown = 0;
  for (auto one = now.incidents.rbegin(); one != now.incidents.rend() && shown < kShown; ++one, ++shown)
    out += article(*one);
  return out;
}

}  // namespace

std::string page_of(const Snapshot& now) {
  const double until = unix_time();
  const std::pair<std::string_view, std::string> values[] = {
      {"state", std::string(name_of(now.state))},
      {"for", duration(until - now.since)},
      {"program", escape(now.program)},
      {"figures", figures(now)},
      {"span", duration(until - now.started)},
      {"timeline", timeline(now, until)},
      {"incidents", articles(now)},
      {"pid", std::to_string(now.pid)},
  };
  // One pass over the template: what was filled in is not looked at again.
  std::string out;
  std::string_view rest = kPage;
  while (true) {
    const auto open = rest.find("{{");
    out += rest.substr(0, open);
    if (open == std::string_view::npos) return out;
    const auto close = rest.find("}}", open);
    const std::string_view name = rest.substr(open + 2, close - open - 2);
    for (const auto& [known, value] : values) {
      if (known == name) out += value;
    }
    rest.remove_prefix(close + 2);
  }
}

}  // namespace trapline::supervise
