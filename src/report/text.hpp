// The report for people at a terminal; see docs/DESIGN for its order: what, where, evidence, help.
#pragma once

#include <string>

#include "core/finding.hpp"
#include "report/style.hpp"

namespace trapline {

inline constexpr std::size_t kMostLines = 25;  // of a report without -v

std::string render_text(const Report& report, const Style& style);

}  // namespace trapline
