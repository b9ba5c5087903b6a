// `trapline doctor`.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace trapline::cli {

Action declare_doctor(FlagSet& flags, const std::vector<std::string>& program);

}  // namespace trapline::cli
