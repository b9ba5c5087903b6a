// Keeps a program running: watches it, decides what a fault asks for, replaces it, and leaves nothing behind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "core/result.hpp"
#include "run/options.hpp"
#include "supervise/options.hpp"

namespace trapline::supervise {

struct Request {
  std::vector<std::string> arguments;  // the program and its arguments; not empty
  RunOptions run;
  Settings settings;
  std::function<void(const std::string&)> say;  // one line for the person who looks
};

struct Outcome {
  int exit_code = 0;
  Report report;            // of the start that decided; the decisions are among its notes
  bool has_failed = false;  // it ended otherwise than well or by request
  std::string kept;         // the folder of --report; empty: none was given
};

// Returns when nothing is to be started again. To be called before the process has threads. An error means
// that the program was not started even once.
Result<Outcome> supervise(const Request& request);

// What would be done after this report, as a line: "stop: TL102 comes back until ...".
std::string dry_run(const Report& report, const Policy& policy);

}  // namespace trapline::supervise
