// Reads what the guarded processes left in the report folder.
#pragma once

#include <string>
#include <vector>

#include "core/finding.hpp"
#include "run/report_folder.hpp"

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

// Takes finding-*.json and guard-*.json of this run; temporary and foreign files are left alone. Never
// throws.
Collected collect(const ReportFolder& folder);

}  // namespace trapline
