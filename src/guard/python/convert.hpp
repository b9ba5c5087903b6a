// The guard's records as Python objects. Every function needs the GIL.
#pragma once

#include <ATen/core/ivalue.h>
#include <Python.h>

#include <string>
#include <utility>
#include <vector>

#include "guard/frames.h"
#include "trapline/capi.h"

// In every Python since 3.3, in the limited API since 3.13.
extern "C" PyAPI_FUNC(const char*) PyUnicode_AsUTF8(PyObject* unicode);

namespace trapline::guard {

// An owned reference; null where making the object failed.
class PyRef {
 public:
  PyRef() = default;
  explicit PyRef(PyObject* object) : object_(object) {}
  PyRef(PyRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  PyRef& operator=(PyRef&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(object_); }
  static PyRef borrowed(PyObject* object) {
    Py_XINCREF(object);
    return PyRef(object);
  }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

inline PyRef none() { return PyRef::borrowed(Py_None); }
PyRef text(const std::string& value);  // undecodable bytes are replaced
PyRef integer(std::int64_t value);

// Where making the value failed, the key is left as None and the error cleared: a report with a hole is
// better than none.
void put(const PyRef& dict, const char* key, PyRef value);
void append(const PyRef& list, PyRef value);

PyRef scan_to_python(const trapline_scan& scan);
PyRef sizes_to_python(const std::int64_t* sizes, std::size_t count);
PyRef frames_to_python(const trapline_frame* frames, std::size_t count);  // [(code, lasti)]
PyRef stack_to_python();                                                  // the calling thread's whole stack
PyRef value_to_python(const c10::IValue& value);  // None for what has no plain Python form
std::string dtype_name(c10::ScalarType type);     // "int64"

}  // namespace trapline::guard
