#include "supervise/status_server.hpp"

namespace trapline::supervise {

HttpResponse answer_status(const Board& board, const std::string& path) {
  constexpr const char* kText = "text/plain; charset=utf-8";
  if (path == "/livez") {
    if (board.is_alive()) return {200, kText, "ok\n"};
    return {503, kText, "the supervisor does not go round\n"};
  }
  const Snapshot now = board.read();
  if (path == "/readyz")
    return {now.state == State::kReady ? 200 : 503, kText, std::string(name_of(now.state)) + "\n"};
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_of(now)};
  if (path == "/status.json") return {200, "application/json", json_of(now)};
  if (path == "/") return {200, "text/html; charset=utf-8", page_of(now)};
  return {};
}

}  // namespace trapline::supervise
