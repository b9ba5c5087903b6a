// Samples of a data set that the guard proposes to leave out, and the quarantine file that they go into.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/finding.hpp"

namespace trapline::supervise {

// Lines of a quarantine file (docs/skip.md), out of the `samples-PID.jsonl` files in a start's folder: those
// of the fault that ended the program. What it handled before stays out. At most 100,000.
std::vector<std::string> proposed_samples(const std::filesystem::path& folder, const Finding& root);

// Adds the lines. False when the file does not take them.
bool add_samples(const std::filesystem::path& quarantine, const std::vector<std::string>& lines);

}  // namespace trapline::supervise
