// The status as JSON, for programs that look at it.
#include <nlohmann/json.hpp>

#include "report/utf8.hpp"
#include "supervise/board.hpp"

namespace trapline::supervise {

std::string json_of(const Snapshot& now) {
  nlohmann::json incidents = nlohmann::json::array();
  for (const Incident& one : now.incidents) {
    nlohmann::json entry = {{"when", one.when},    {"start", one.start},
                            {"code", one.code},    {"summary", valid_utf8(one.summary)},
                            {"where", one.where},  {"action", one.action},
                            {"reason", one.reason}};
    if (one.to_ready) entry["seconds_to_ready"] = *one.to_ready;
    incidents.push_back(std::move(entry));
  }
  nlohmann::json out = {{"state", std::string(name_of(now.state))},
                        {"since", now.since},
                        {"pid", now.pid},
                        {"program", valid_utf8(now.program)},
                        {"starts", now.starts},
                        {"refused_requests", now.refused},
                        {"standby", now.has_standby ? (now.standby_ready ? "ready" : "starting") : "none"},
                        {"faults", now.faults},
                        {"decisions", now.decisions},
                        {"poisoned_seconds", now.poisoned_seconds},
                        {"unready_seconds", now.unready_seconds},
                        {"incidents", std::move(incidents)}};
  if (now.last_to_ready) out["seconds_to_ready"] = *now.last_to_ready;
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace trapline::supervise
