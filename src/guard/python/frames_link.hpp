// Where trapline_frames_walk() and its relatives (guard/frames.h) come from.
#pragma once

#include <Python.h>

namespace trapline::guard {

// use_frames(capsule): read frames by the module that fits this Python (frames/frames.c).
PyObject* use_frames(PyObject*, PyObject* capsule);

}  // namespace trapline::guard
