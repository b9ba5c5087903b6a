// What every `trapline check` command shares: flags, threads, the progress bar, Ctrl-C, and the exit code.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "check/files.hpp"
#include "check/workers.hpp"
#include "cli/command_line.hpp"
#include "cli/output.hpp"
#include "core/finding.hpp"
#include "core/result.hpp"

namespace trapline::cli {

struct CheckFlags {
  unsigned threads = 0;  // 0: all of the machine
  OutputFlags output;
};

void declare_check(FlagSet& flags, CheckFlags& check);

// The note that all of them end their help with.
extern const char* const kCheckFooter;

// Runs `look` with the workers, a progress bar and Ctrl-C, prints the problems that it adds, writes its
// report and makes the exit code: 0 clean, 1 findings, 2 something could not be read, 3 stopped before the
// end.
using CheckBody = std::function<Report(const check::Job& job, std::vector<Error>& problems)>;
Result<int> run_check(const CheckFlags& flags, const CheckBody& look);

}  // namespace trapline::cli
