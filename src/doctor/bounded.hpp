// Questions to what may never answer: a program, or a function in a process of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/exit_status.hpp"

namespace trapline::doctor {

struct Answer {
  std::string error{};     // why the program could not be started
  bool timed_out = false;  // it was killed, with what it had started
  ExitStatus ended{};      // when it ended by itself
  std::string output{};    // the last 8 KiB of its standard output and error
};

// Runs a program without input in a process group of its own, for at most so many seconds. `arguments` is not
// empty; its first word is looked for on the PATH of `environment`.
Answer ask(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
           double seconds);

// What the function returns, run in a child: nullopt when it crashes or takes longer. At most 64 KiB.
std::optional<std::string> ask_child(const std::function<std::string()>& question, double seconds);

}  // namespace trapline::doctor
