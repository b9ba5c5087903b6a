// `trapline check labels|ids|finite ...`: files against what a model can take, before a GPU is asked for.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace trapline::cli {

Action declare_check_labels(FlagSet& flags, const std::vector<std::string>& program);
Action declare_check_ids(FlagSet& flags, const std::vector<std::string>& program);
Action declare_check_model(FlagSet& flags, const std::vector<std::string>& program);
Action declare_check_dataset(FlagSet& flags, const std::vector<std::string>& program);
Action declare_check_finite(FlagSet& flags, const std::vector<std::string>& program);

}  // namespace trapline::cli
