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
// autograd's threads and the dispatcher. `arguments` are all arguments of the call, in schema order.
[[noreturn]] void raise_violation(ThreadState& state, const Plan& plan, const Violation& violation,
                                  c10::ArrayRef<c10::IValue> arguments);

// New references; the caller holds the GIL. nullptr with a Python error set when memory is exhausted.
PyObject* history_to_python();
PyObject* remembered_to_python();

}  // namespace trapline::guard
