#include "supervise/board.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "report/utf8.hpp"

namespace trapline::supervise {
namespace {

constexpr double kStuck = 10;  // seconds

}  // namespace

std::string_view name_of(State state) {
  switch (state) {
    case State::kStarting:
      return "starting";
    case State::kReady:
      return "ready";
    case State::kUnwell:
      return "unwell";
    case State::kPoisoned:
      return "poisoned";
    case State::kEnding:
      return "ending";
    case State::kWaiting:
      return "waiting";
    case State::kStopped:
      break;
  }
  return "stopped";
}

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Snapshot Board::read() const {
  const std::scoped_lock lock(mutex_);
  return now_;
}

void Board::beat() {
  const std::scoped_lock lock(mutex_);
  beat_ = steady_seconds();
}

bool Board::is_alive() const {
  const std::scoped_lock lock(mutex_);
  return steady_seconds() - beat_ < kStuck;
}

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
