// The report for people at a terminal; its order: what, where, evidence, help.
#pragma once

#include <cstddef>
#include <string>

#include "core/finding.hpp"
#include "report/style.hpp"

namespace trapline {

// Of a report without -v; with the empty line that sets it off from the program's output these are 25.
inline constexpr std::size_t kMaxLines = 24;

std::string render_text(const Report& report, const Style& style);

}  // namespace trapline
