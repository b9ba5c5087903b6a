// Starts the user's program and waits for it, staying out of its way.
//
// There is no pseudo-terminal and no pipe between the program and its terminal: the program inherits
// Trapline's own descriptors 0, 1 and 2 and its process group. So isatty, colours, progress bars, the window
// size, Ctrl-C, Ctrl-Z, `fg`, redirections and pipes are not imitated; they are the same objects as without
// Trapline. The price is that Trapline does not see the output, and it does not need to: findings come as
// files.
//
// A signal to the group reaches both, one to Trapline's pid has to be passed on, and nothing in it says which
// it was: a third process in the group is asked (witness.hpp). Weighed against that were: a group of the
// program's own with the terminal handed over (Ctrl-C would no longer reach the script or `make` around it,
// and two jobs of `make -j` would fight for the terminal), Trapline leaving the group (the leader of a
// session cannot, and launchers that signal the group of the pid that they know would miss the program's
// workers), and to exec the program with the reporter beside it (the report would come after the prompt, and
// its file after the end).
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
