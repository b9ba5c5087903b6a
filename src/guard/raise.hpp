// From a violation to a Python exception, and from the guard's records to Python objects.
#pragma once

#include <ATen/core/ivalue.h>
#include <Python.h>

#include "guard/check.hpp"

namespace trapline::guard {

// The Python callable that turns a violation into an exception instance; a new reference replaces the old
// one. The caller holds the GIL. nullptr forgets it.
void set_handler(PyObject* handler);

// Calls the handler under the GIL and throws the instance that it returns as python_error, which crosses
// autograd's threads and the dispatcher. `arguments` points at all arguments of the call, in schema
// order.
//
// With --on-fault skip the handler may return a tensor instead of an exception: the argument without its bad
// elements. It then takes the place of the bad one in `arguments` (in a copy, where that is a list), and this
// function returns. The caller checks the call again: another argument of it may be bad too.
void answer_violation(ThreadState& state, const Plan& plan, const Violation& violation,
                      c10::IValue* arguments);

// New references; the caller holds the GIL. nullptr with a Python error set when memory is exhausted.
PyObject* history_to_python();
PyObject* remembered_to_python();

}  // namespace trapline::guard
