// The flags of every command that starts programs under guard.
#pragma once

#include "cli/flags.hpp"
#include "run/options.hpp"

namespace trapline::cli {

// Declares each row of run_options(); `options` gets the values.
void declare_run_options(FlagSet& flags, RunOptions& options);

}  // namespace trapline::cli
