// The last guarded calls, for the report: operations, shapes, ranges, and where in the program.
#pragma once

#include "kernel/python.hpp"
#include "trapline/capi.h"

namespace trapline::kernel {

struct Plan;

// Under the GIL, all of them.
struct Entry;
Entry& record(const Plan& plan);  // a new entry, the newest
void record_tensor(Entry& entry, int argument, int position, PyObject* tensor,
                   const trapline_tensor& described);
void note_range(Entry& entry, int argument, const trapline_scan& scan);
PyObject* history_to_python();  // oldest first, as _guard/on_host.py has it
void forget_history();

}  // namespace trapline::kernel
