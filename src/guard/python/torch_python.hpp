// What the adapter uses of PyTorch's Python side, declared here: its own headers bring pybind11, which the
// limited API of Python does not suffice for. The layouts are those of every PyTorch from 2.0 on but for
// THPVariable's `cdata`; `_extension/layout.py` reads them in the headers at hand and refuses what it does
// not know, and `layout_check.cpp` compares them with the compiler's own when adapters are made to be
// shipped.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>
#include <c10/util/MaybeOwned.h>

#include <exception>
#include <string>
#include <utility>

#define TRAPLINE_OF_TORCH __attribute__((visibility("default")))

// Of libtorch_python ----------------------------------------------------------------------------------------

extern TRAPLINE_OF_TORCH PyObject* THPVariableClass;
extern TRAPLINE_OF_TORCH PyObject* ParameterClass;
#ifdef TRAPLINE_WRAP_BY_VALUE
TRAPLINE_OF_TORCH PyObject* THPVariable_Wrap(at::TensorBase var);
#else
TRAPLINE_OF_TORCH PyObject* THPVariable_Wrap(const at::TensorBase& var);
#endif

namespace torch {
TRAPLINE_OF_TORCH std::string processErrorMsg(std::string text);
TRAPLINE_OF_TORCH void translate_exception_to_python(const std::exception_ptr& error);
}  // namespace torch

namespace trapline::guard {

class GilAcquire {
 public:
  GilAcquire() : state_(PyGILState_Ensure()) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() { PyEval_RestoreThread(state_); }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// An error that is set stays set, whatever happens meanwhile.
class ErrorScope {
 public:
  ErrorScope() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~ErrorScope() { PyErr_Restore(type_, value_, trace_); }
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

}  // namespace trapline::guard

// PyTorch's own, which its code catches by this name and reads and restores by these members. It is no class
// of Trapline's namespace for that reason.
struct TRAPLINE_OF_TORCH python_error : public std::exception {
  python_error() = default;
  python_error(const python_error& other)
      : type(other.type), value(other.value), traceback(other.traceback), message(other.message) {
    const trapline::guard::GilAcquire gil;
    Py_XINCREF(type);
    Py_XINCREF(value);
    Py_XINCREF(traceback);
  }
  python_error(python_error&& other) noexcept
      : type(std::exchange(other.type, nullptr)),
        value(std::exchange(other.value, nullptr)),
        traceback(std::exchange(other.traceback, nullptr)),
        message(std::move(other.message)) {}
  python_error& operator=(const python_error&) = delete;
  python_error& operator=(python_error&&) = delete;
  ~python_error() override {
    if (type == nullptr && value == nullptr && traceback == nullptr) return;
    const trapline::guard::GilAcquire gil;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }

  const char* what() const noexcept override { return message.c_str(); }

  PyObject* type{nullptr};
  PyObject* value{nullptr};
  PyObject* traceback{nullptr};
  std::string message;
};

namespace trapline::guard {

// The text of a Python error, as PyTorch makes it. The caller holds the GIL.
inline std::string text_of(const python_error& error) {
  std::string text = "python_error";
  const ErrorScope other;
  PyObject* plain = error.value == nullptr ? nullptr : PyObject_Str(error.value);
  PyObject* bytes = plain == nullptr ? nullptr : PyUnicode_AsEncodedString(plain, "utf-8", "strict");
  if (bytes != nullptr) text = PyBytes_AsString(bytes);
  Py_XDECREF(bytes);
  Py_XDECREF(plain);
  PyErr_Clear();
  return text;
}

#ifdef TRAPLINE_TENSOR_IS_MAYBE_OWNED
using TensorInPython = c10::MaybeOwned<at::Tensor>;
#else
using TensorInPython = at::Tensor;
#endif

// How a Python tensor begins.
struct PythonTensor {
  PyObject head;
  TensorInPython cdata;
};

// False for what cannot be asked. The caller holds the GIL.
inline bool is_tensor(PyObject* object) {
  if (THPVariableClass == nullptr) return false;
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (type == THPVariableClass || type == ParameterClass) return true;
  const int result = PyObject_IsInstance(object, THPVariableClass);
  if (result < 0) PyErr_Clear();
  return result > 0;
}

inline const at::Tensor& tensor_of(PyObject* object) {
  const auto* held = reinterpret_cast<const PythonTensor*>(object);
#ifdef TRAPLINE_TENSOR_IS_MAYBE_OWNED
  return *held->cdata;
#else
  return held->cdata;
#endif
}

}  // namespace trapline::guard
