// `trapline man [COMMAND]`, made of the tables of commands and flags.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace trapline::cli {

Action declare_man(FlagSet& flags, const std::vector<std::string>& program);

}  // namespace trapline::cli
