// Many processes, one fault: which finding is the root, and which ones say the same.
#pragma once

#include "core/finding.hpp"
#include "report/collected.hpp"

namespace trapline {

// The findings of one run, root first. Findings with the same cause, operation, argument and source line are
// one finding: the first is kept; what other ranks saw is added to its evidence and told in a note; a copy of
// the same element (a DataLoader worker and its parent) is dropped. Then a broken contract comes before an
// ordinary exception, before faults of the device, before victims; and within these the earlier first.
Report merge(const Collected& collected);

// One verdict for a job of which both are left: what guarded processes saw themselves, and what its logs
// tell. What was seen comes first; a log's finding that says the same, or less, only adds its lines to the
// evidence.
Report merge(Report seen, Report from_logs);

}  // namespace trapline
