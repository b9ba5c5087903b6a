// From a violation to a Python exception, and from the guard's records to Python objects.
#pragma once

#include <Python.h>

#include "guard/answer.hpp"

namespace trapline::guard {

// The Python callable that turns a violation into an exception instance; a new reference replaces the old
// one. The caller holds the GIL. nullptr forgets it. answer_violation() (answer.hpp) calls it.
void set_handler(PyObject* handler);

// False with the Python error of a fault set, where the handler has not dealt with it. The caller holds the
// GIL and keeps the thread busy.
bool ask_about_fault(const LateFault& fault);

// New references; the caller holds the GIL. nullptr with a Python error set when memory is exhausted.
PyObject* history_to_python();
PyObject* remembered_to_python();

}  // namespace trapline::guard
