// One `trapline run`: prepare, start, wait, collect.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "core/result.hpp"
#include "run/program.hpp"

namespace trapline {

struct RunRequest {
  std::vector<std::string> arguments;            // the program and its arguments; not empty
  std::optional<std::filesystem::path> reports;  // --report
  bool cpu = false;
  std::optional<long> steps;
  bool verbose = false;
};

struct RunOutcome {
  Ended ended;
  Report report;
  bool handled = false;  // the program went on after its faults and ended well
};

// An error means that the program was not started.
Result<RunOutcome> run(const RunRequest& request);

// What to add to the report about how the program ended; pure, so that it can be tested.
std::vector<std::string> notes_about(const Ended& ended, bool has_findings, std::size_t guarded_processes);

}  // namespace trapline
