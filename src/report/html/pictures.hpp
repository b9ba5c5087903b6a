// What a finding shows better than it says: where the bad elements lie, which values there are, how the
// losses went, which rank did what. SVG without text, with the words beside it in HTML: readable on a phone,
// in print and by ear.
#pragma once

#include <string_view>

#include "core/finding.hpp"
#include "report/html/markup.hpp"

namespace trapline::html {

// Each is empty where the finding does not know enough.
Html strip_of(const Finding& finding);
Html histogram_of(const Finding& finding);
// The losses and gradient norms of the steps before, one bar each; red where they are not finite.
Html courses_of(const Finding& finding);

// One lane for each rank of a job, in causal order; empty for a report of one process.
Html ranks_of(const Report& report, std::string_view directory);

}  // namespace trapline::html
