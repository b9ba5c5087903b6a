// One bad call through the whole chain: started, guarded, caught, reported, read.
#pragma once

#include <optional>
#include <string>

#include "core/finding.hpp"
#include "doctor/line.hpp"

namespace trapline::doctor {

// Runs a program with one bad label as `trapline run` does, on the GPU where torch sees one, and adds what
// that proved. Returns what was reported of it.
std::optional<Report> self_test(const std::string& python, double seconds, Lines& lines);

}  // namespace trapline::doctor
