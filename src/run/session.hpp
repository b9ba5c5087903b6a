// One `trapline run`: prepare, attempt, conclude.
#pragma once

#include <string>
#include <vector>

#include "core/finding.hpp"
#include "core/result.hpp"
#include "report/report_socket.hpp"
#include "run/exit_status.hpp"
#include "run/folder_lock.hpp"
#include "run/options.hpp"
#include "run/report_folder.hpp"

namespace trapline {

struct RunRequest {
  std::vector<std::string> arguments;  // the program and its arguments; not empty
  RunOptions options;
};

// All that it takes to start the program under guard, and to read afterwards what its processes found.
struct Prepared {
  ReportFolder folder;
  RunOptions options;  // what was not given and has a default has it; paths are absolute
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  bool is_preloaded = false;  // the guard comes in by LD_PRELOAD, and says itself when there is none
  FolderLock lock;            // of a private folder
  ReportSocket socket;        // for what processes cannot write into the folder
};

struct RunOutcome {
  ExitStatus ended;
  Report report;
  bool uncaught = false;                  // some finding is of an exception that nobody caught
  bool caught_before = false;             // the program had caught what was found, and ended later
  bool handled = false;                   // the program went on after its faults and ended well
  std::string skipped;                    // what --on-fault skip left out, as a sentence; empty: nothing
  std::string caught;                     // "the program caught 4 faults (TL102, TL105)"; empty: none
  std::string how_to_see;                 // "to see them: trapline run --report DIR -- ..."
  std::vector<std::string> caught_lines;  // the headline of each of them
  std::vector<std::string> guards;        // which guard its processes had, and why that one
  std::string unchecked;                  // said when a --cpu run ended without one guarded operation
  bool torchless = false;                 // it ended well, and nothing in it seems to have been PyTorch's
};

Result<Prepared> prepare(const RunRequest& request);

// Starts the program and waits for its end. An error means that it was not started.
Result<ExitStatus> attempt(const Prepared& prepared);

// Reads the folder and settles what ended the program.
RunOutcome conclude(const Prepared& prepared, const ExitStatus& ended);

// All three.
Result<RunOutcome> run(const RunRequest& request);

}  // namespace trapline
