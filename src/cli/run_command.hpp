// `trapline run [flags] -- PROGRAM...`
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace trapline::cli {

Action declare_run(FlagSet& flags, const std::vector<std::string>& program);

}  // namespace trapline::cli
