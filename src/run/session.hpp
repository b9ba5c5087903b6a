// One `trapline run`: prepare, start, wait, collect.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "core/result.hpp"
#include "report/collected.hpp"
#include "report/ends.hpp"
#include "run/program.hpp"

namespace trapline {

struct RunRequest {
  std::vector<std::string> arguments;            // the program and its arguments; not empty
  std::optional<std::filesystem::path> reports;  // --report
  bool cpu = false;
  std::optional<long> steps;
  bool verbose = false;
  std::string on_fault = "raise";  // --on-fault: or "skip" or "stop"
  std::optional<double> skip_limit;
  std::optional<std::filesystem::path> quarantine;  // --quarantine
  std::string watch;                                // --watch: "nan"; empty: nothing
};

struct RunOutcome {
  Ended ended;
  Report report;
  bool handled = false;                   // the program went on after its faults and ended well
  std::string skipped;                    // what --on-fault skip left out, as a sentence; empty: nothing
  std::string caught;                     // "the program caught 4 faults (TL102, TL105)"; empty: none
  std::string how_to_see;                 // "to see them: trapline run --report DIR -- ..."
  std::vector<std::string> caught_lines;  // the headline of each of them
  std::string unchecked;                  // said when a --cpu run ended without one guarded operation
};

// An error means that the program was not started.
Result<RunOutcome> run(const RunRequest& request);

// How the reports of caught faults can be had: "to see them: trapline run --report DIR -- ...".
std::string how_to_see(const std::map<std::string, std::uint64_t>& caught);

// What to add to the report about how the program ended; pure, so that it can be tested.
std::vector<std::string> notes_about(const Ended& ended, bool has_findings, std::size_t guarded_processes);

// What became of the faults of a program that failed: which ones it caught, and what ended it.
std::vector<std::string> notes_about(const Settled& settled, const Ended& ended, bool has_findings,
                                     const std::string& where);

// "2 of 300 optimizer steps were skipped (0.67 %), 3 samples are in FILE"; empty when none was.
std::string sentence_about(const SkipCounts& skip);

}  // namespace trapline
