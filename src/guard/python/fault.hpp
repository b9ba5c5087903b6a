// A fault of the device, as the handler gets it. Every function needs the GIL.
#pragma once

#include "guard/device_faults.hpp"
#include "guard/python/convert.hpp"

namespace trapline::guard {

// As for a violation that is raised at once; what is gone by now is None, or what was kept of it:
//   args[name]   a tensor that is gone: its content, where that was kept and not written to
//   graphs[name] the graph behind an argument: [(class, [places of the next nodes; -1: not noted],
//   parameter)] shapes[name] of a tensor argument that is gone and of which nothing was kept
// and beyond that: late, again, replayed, backward, contained, batch, order, device, shape, dtype, unsure (no
// counter of writes: the content is to be compared with the scan).
PyRef describe_fault(const LateFault& fault);

PyRef thread_label(const char* name, long id);

}  // namespace trapline::guard
