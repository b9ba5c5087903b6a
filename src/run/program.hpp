// Starts the user's program and waits for it, staying out of its way.
//
// There is no pseudo-terminal and no pipe between the program and its terminal: the program inherits
// Trapline's own descriptors 0, 1 and 2 and its process group. So isatty, colours, progress bars, the window
// size, Ctrl-C, Ctrl-Z, `fg`, redirections and pipes are not imitated; they are the same objects as without
// Trapline. The price is that Trapline does not see the output, and it does not need to: findings come as
// files.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "run/exit_status.hpp"

namespace trapline {

// Runs `arguments` with `environment` until the program itself ends, and passes on the signals that are meant
// for it. The program starts with the signal mask and dispositions that Trapline was started with.
Result<ExitStatus> run_program(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& environment);

}  // namespace trapline
