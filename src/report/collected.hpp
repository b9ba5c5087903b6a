// What one process of a guarded program leaves in a report folder, and how it is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"

namespace trapline {

struct CollectedFinding {
  Finding finding;
  long long written = 0;  // time of the file, ns
};

// What --on-fault skip left out, added up over the processes.
struct SkipCounts {
  std::uint64_t steps = 0;    // optimizer steps, done and left out
  std::uint64_t skipped = 0;  // left out
  std::uint64_t samples = 0;  // of the data set, written to the quarantine file
  std::string quarantine;     // that file
};

struct Collected {
  std::vector<CollectedFinding> findings;  // as they were written, earliest first
  std::vector<std::string> notes;          // of the processes, and about files that could not be read
  std::size_t guarded_processes = 0;       // processes in which the guard was at work
  SkipCounts skip;
};

// Whether a file of this name is a process's finding-*.json, guard-*.json or skip-*.json.
bool is_report_file(std::string_view name);

// Adds what the file says; a file that cannot be read or makes no sense becomes a note. Never throws.
void read_report_file(const std::filesystem::path& path, Collected& out);

// A report of any name, e.g. what -o wrote: adds its findings. False, and nothing is added, when the file is
// no report.
bool add_report(const std::filesystem::path& path, Collected& out);

}  // namespace trapline
