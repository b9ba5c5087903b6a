// `trapline cache` and `trapline cache clean`.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace trapline::cli {

Action declare_cache_list(FlagSet& flags, const std::vector<std::string>& program);
Action declare_cache_clean(FlagSet& flags, const std::vector<std::string>& program);

}  // namespace trapline::cli
