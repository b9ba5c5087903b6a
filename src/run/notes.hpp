// What a run's report adds about how the program ended: sentences, made from facts alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "report/collected.hpp"
#include "report/ends.hpp"
#include "run/exit_status.hpp"

namespace trapline {

// Ended by one of the signals by which people and schedulers end programs, or by its own answer to Ctrl-C
// (130): that is no crash.
bool is_request_to_end(const ExitStatus& ended);

// How the program ended, where that says more than its exit code. A C++ program's guard says only at the
// start that it is missing: `is_cpp` repeats below the program's output where to look.
std::vector<std::string> notes_about(const ExitStatus& ended, bool has_findings,
                                     std::size_t guarded_processes, bool is_cpp = false);

// Why nothing of this command was guarded, as far as its environment and its first words tell; empty: they
// do not.
// `python -I`, `-E` and `-S` do not read PYTHONPATH.
std::string why_unguarded(std::span<const std::string> arguments, std::span<const std::string> environment);

// What became of the faults of a program that failed: which ones it caught, and what ended it.
std::vector<std::string> notes_about(const Settled& settled, const ExitStatus& ended, bool has_findings,
                                     const std::string& where);

// How the reports of caught faults can be had: "to see them: trapline run --report DIR -- ...".
std::string how_to_see(const std::map<std::string, std::uint64_t>& caught);

// "2 of 300 optimizer steps were skipped (0.67 %), 3 samples are in FILE"; empty when none was.
std::string sentence_about(const SkipCounts& skip);

// Of a --cpu run: a line when it is known that no process ran one guarded operation; else empty.
std::string unchecked_line(const Collected& collected);

}  // namespace trapline
