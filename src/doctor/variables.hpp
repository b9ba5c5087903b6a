// What the environment's variables mean for a run.
#pragma once

#include <span>
#include <string>

#include "doctor/line.hpp"

namespace trapline::doctor {

// A line for each variable that matters, and for each TRAPLINE_* that Trapline does not know.
Lines lines_of_variables(std::span<const std::string> environment);

}  // namespace trapline::doctor
