// `trapline completions SHELL`, made of the tables of commands and flags.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace trapline::cli {

Action declare_completions(FlagSet& flags, const std::vector<std::string>& program);

}  // namespace trapline::cli
