// What the port of --status answers: /livez, /readyz, /metrics, /status.json and a page for people. It takes
// no commands.
#pragma once

#include <string>

#include "supervise/board.hpp"
#include "supervise/http.hpp"

namespace trapline::supervise {

HttpResponse answer_status(const Board& board, const std::string& path);

}  // namespace trapline::supervise
