// What holds for the report of whatever was collected.
#pragma once

#include <algorithm>
#include <string>

#include "folder.hpp"
#include "report/collected.hpp"
#include "report/json.hpp"
#include "report/merge.hpp"
#include "report/style.hpp"
#include "report/text.hpp"

namespace trapline::fuzz {

inline void check_report(const Collected& collected) {
  const Report report = merge(collected);
  require(report.verdict != Verdict::kClean || (report.findings.empty() && collected.omissions.empty()));
  require((report.verdict == Verdict::kFault) == !report.findings.empty());
  require(render_text(report, Style{}).find('\x1b') == std::string::npos);
  const auto again =
      parse_report(to_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  require(again && again->findings.size() == std::min(report.findings.size(), ReadLimits{}.items));
}

}  // namespace trapline::fuzz
