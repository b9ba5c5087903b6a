// `trapline run [flags] -- PROGRAM...`
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace trapline::cli {

Action declare_run(CLI::App& app, const std::vector<std::string>& program);

}  // namespace trapline::cli
