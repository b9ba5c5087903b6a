#include "guard/python/frames_link.hpp"

#include <atomic>

#include "guard/python/convert.hpp"
#include "guard/python/frames/frames_face.h"

namespace {

std::atomic<trapline_frames_walker> g_walk{nullptr};

}  // namespace

int trapline_frames_without_gil() { return g_walk.load(std::memory_order_relaxed) != nullptr ? 1 : 0; }

int trapline_frames_walk(trapline_frame* out, int max) {
  const trapline_frames_walker walk = g_walk.load(std::memory_order_relaxed);
  return walk == nullptr ? 0 : walk(out, max);
}

int trapline_frames_with_gil(trapline_frame* out, int max) {
  using trapline::guard::PyRef;
  int count = 0;
  PyRef frame = PyRef::borrowed(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && frame.get() != Py_None && count < max) {
    PyRef code(PyObject_GetAttrString(frame.get(), "f_code"));
    PyRef at(PyObject_GetAttrString(frame.get(), "f_lasti"));
    PyRef back(PyObject_GetAttrString(frame.get(), "f_back"));
    if (!code || !at || !back) break;
    out[count].code = code.release();
    out[count].lasti = static_cast<std::int32_t>(PyLong_AsLong(at.get()));
    ++count;
    frame = std::move(back);
  }
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return count;
}

namespace trapline::guard {

PyObject* use_frames(PyObject*, PyObject* capsule) {
  const auto* face =
      static_cast<const trapline_frames_face*>(PyCapsule_GetPointer(capsule, TRAPLINE_FRAMES_CAPSULE));
  if (face == nullptr) return nullptr;
  g_walk.store(face->walk);
  Py_RETURN_NONE;
}

}  // namespace trapline::guard
