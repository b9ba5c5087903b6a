// Starts the user's program and waits for it, staying out of its way.
//
// There is no pseudo-terminal and no pipe between the program and its terminal: the program inherits
// Trapline's own descriptors 0, 1 and 2 and its process group. So isatty, colours, progress bars, the window
// size, Ctrl-C, Ctrl-Z, `fg`, redirections and pipes are not imitated; they are the same objects as without
// Trapline. The price is that Trapline does not see the output, and it does not need to: findings come as
// files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace trapline {

struct Ended {
  int exit_code = 0;  // of the program; 128 + N when signal N killed it: what a shell reports
  int signal = 0;     // 0: it exited by itself
  bool core_dumped = false;
};

// The file that a shell would start for `name` with this PATH, or why there is none.
Result<std::string> find_program(const std::string& name, std::string_view path);

// Runs `arguments` with `environment` until the program itself ends; processes that it left behind are not
// waited for. Meanwhile SIGINT and SIGQUIT from the terminal are left to the program, which gets them from
// the terminal too, and signals that somebody sends to Trapline alone are passed on to the program. The
// program starts with the signal mask and dispositions that Trapline was started with.
Result<Ended> run_program(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment);

}  // namespace trapline
