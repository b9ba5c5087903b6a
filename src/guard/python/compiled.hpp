// `trapline::check(argument, others, numbers, site) -> argument`: the checks of graphs that torch.compile has
// lowered (docs/compile.md). Judged here, without Python, where the argument is good; what is bad in host
// memory goes to Python, which makes the report or the healed copy. On the device the check is the one of
// a guarded call: enqueued, and its result is the healed copy.
#pragma once

#include <Python.h>

namespace trapline::guard {

// compiled_check(read, ask) -> callable: gives the operation its kernel, and returns the same check as a
// function that compiled code calls without the dispatcher. `read(site)` says what a site stands for;
// `ask(argument, others, numbers, site)` is the check in Python. Both are kept for ever, as the kernel is:
// compiled code may call it as long as the process lives.
PyObject* compiled_check(PyObject*, PyObject* args);

}  // namespace trapline::guard
