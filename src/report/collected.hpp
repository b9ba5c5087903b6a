// What one process of a guarded program leaves in a report folder, and how it is read.
#pragma once

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

struct Collected {
  std::vector<CollectedFinding> findings;  // as they were written, earliest first
  std::vector<std::string> notes;          // of the processes, and about files that could not be read
  std::size_t guarded_processes = 0;       // processes in which the guard was at work
};

// Whether a file of this name is a process's finding-*.json or guard-*.json.
bool is_report_file(std::string_view name);

// Adds what the file says; a file that cannot be read or makes no sense becomes a note. Never throws.
void read_report_file(const std::filesystem::path& path, Collected& out);

// A report of any name, e.g. what -o wrote: adds its findings. False, and nothing is added, when the file is
// no report.
bool add_report(const std::filesystem::path& path, Collected& out);

}  // namespace trapline
