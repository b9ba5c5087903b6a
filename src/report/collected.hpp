// What one process of a guarded program leaves in a report folder, and how it is read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"
#include "report/report_socket.hpp"

namespace trapline {

struct CollectedFinding {
  Finding finding;
  long long written = 0;  // time of the file, ns
  std::string file{};     // its name; empty: of another kind of report
};

// What one process knew of its own end, and of the faults that were raised in it.
struct ProcessEnd {
  long long written = 0;
  bool over = false;                   // it came to its end; false: it was killed, or goes on
  bool went_on = false;                // what nobody caught ended a cell of a notebook only
  std::vector<std::string> unhandled;  // files of the findings that nobody caught
  std::vector<std::string> left_with;  // files of those that it left with, as by sys.exit in an except
  std::string elsewhere;               // words of an exception that came from another process's fault
  std::string other;                   // the exception that ended it and is none of ours
  std::map<std::string, std::uint64_t> raised;  // how often, by code
  std::optional<bool> checked;                  // whether any guarded operation ran; nullopt: not known
  bool lost = false;                            // not all of its findings could be written
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
  std::vector<std::string> notes;          // of the processes
  std::vector<std::string> omissions;      // what could not be read, or is not to be trusted: no clean report
  std::vector<ProcessEnd> ends;            // of the processes that had something to tell
  std::size_t guarded_processes = 0;       // processes in which the guard was at work
  std::vector<std::string> guards;         // which guard they had, and why that one
  SkipCounts skip;
};

// Whether a file of this name is a process's: finding-*.json, guard-*.json, ended-*.json, skip-*.json or
// lost-*.json.
bool is_report_file(std::string_view name);

// Adds what the file says; a file that cannot be read or makes no sense becomes an omission, and so does one
// that belongs neither to `owner` nor to root. nullopt: to whom it belongs does not matter. Never throws.
void read_report_file(const std::filesystem::path& path, Collected& out,
                      std::optional<uid_t> owner = std::nullopt);

// The same of one that was handed over and cannot be written into the folder.
void read_handed_file(const HandedFile& handed, Collected& out);

// A report of any name, e.g. what -o wrote: adds its findings. False, and nothing is added, when the file is
// no report.
bool add_report(const std::filesystem::path& path, Collected& out);

}  // namespace trapline
