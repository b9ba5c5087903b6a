// `trapline check labels|ids|finite ...`: files against what a model can take, before a GPU is asked for.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace trapline::cli {

Action declare_check_labels(CLI::App& app, const std::vector<std::string>& program);
Action declare_check_ids(CLI::App& app, const std::vector<std::string>& program);
Action declare_check_model(CLI::App& app, const std::vector<std::string>& program);
Action declare_check_dataset(CLI::App& app, const std::vector<std::string>& program);
Action declare_check_finite(CLI::App& app, const std::vector<std::string>& program);

}  // namespace trapline::cli
