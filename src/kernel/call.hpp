// One guarded call: what torch hands to a Python kernel, checked, and handed on below.
#pragma once

#include "kernel/plan.hpp"

namespace trapline::kernel {

// Under the GIL.
struct ThreadState {
  int busy = 0;   // describing, checking, or in Python's part: nothing is checked or recorded
  int depth = 0;  // inside a guarded operation that was checked: what it calls is not checked again
};

inline thread_local ThreadState t_state;
inline bool g_enabled = false;

// Where a key set leads, as _guard/kernel.py's classify() says.
enum class Leads { kElsewhere = 0, kHost = 1, kDevice = 2 };

// args: (key set, arguments...). A new reference, or nullptr with the exception to raise.
PyObject* call_kernel(const Plan& plan, PyObject* args, PyObject* kwargs);

}  // namespace trapline::kernel
