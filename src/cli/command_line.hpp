// The command line: which command, with which flags. The only place that turns errors into exit codes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace trapline::cli {

class FlagSet;

// What a command does after its flags were read; returns the exit code.
using Action = std::function<Result<int>()>;

struct CommandRow {
  std::string_view name;
  std::string_view summary;  // for `trapline --help`
  std::string_view usage;    // after the name
  bool takes_program;        // the words after the flags are somebody else's command line
  // Declares the command's flags; `program` holds the words after them when the action runs.
  Action (*declare)(FlagSet& flags, const std::vector<std::string>& program);
};

// All commands. To add one, write its file and add its row in command_line.cpp.
std::span<const CommandRow> commands();

// The whole program: reads the words after the program's name, runs the command, prints errors as one line.
int run_command_line(const std::vector<std::string>& words) noexcept;

}  // namespace trapline::cli
