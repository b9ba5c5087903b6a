#include "guard/python/convert.hpp"

#include <algorithm>
#include <cctype>

#include "guard/history.hpp"
#include "guard/python/raise.hpp"
#include "guard/python/torch_python.hpp"
#include "guard/remember.hpp"

namespace trapline::guard {
namespace {

constexpr int kMaxFrames = 512;

PyRef number(bool is_float, std::int64_t whole, double real) {
  return is_float ? PyRef(PyFloat_FromDouble(real)) : integer(whole);
}

PyRef tensor_to_python(const at::Tensor& tensor) {
  return tensor.defined() ? PyRef(THPVariable_Wrap(tensor)) : none();
}

}  // namespace

PyRef text(const std::string& value) {
  return PyRef(PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace"));
}

PyRef integer(std::int64_t value) { return PyRef(PyLong_FromLongLong(value)); }

void put(const PyRef& dict, const char* key, PyRef value) {
  if (!value) {
    PyErr_Clear();
    value = none();
  }
  if (dict && PyDict_SetItemString(dict.get(), key, value.get()) != 0) PyErr_Clear();
}

void append(const PyRef& list, PyRef value) {
  if (!value) {
    PyErr_Clear();
    value = none();
  }
  if (list && PyList_Append(list.get(), value.get()) != 0) PyErr_Clear();
}

PyRef scan_to_python(const trapline_scan& scan) {
  const bool is_float = scan.is_float != 0;
  PyRef dict(PyDict_New());
  put(dict, "bad", integer(scan.bad));
  put(dict, "total", integer(scan.total));
  put(dict, "first", integer(scan.first));
  put(dict, "value", number(is_float, scan.ivalue, scan.fvalue));
  put(dict, "min", number(is_float, scan.imin, scan.fmin));
  put(dict, "max", number(is_float, scan.imax, scan.fmax));
  put(dict, "lo", integer(scan.lo));
  put(dict, "hi", integer(scan.hi));
  put(dict, "also", scan.has_also != 0 ? integer(scan.also) : none());
  put(dict, "list_position", scan.list_position >= 0 ? integer(scan.list_position) : none());
  put(dict, "reason", integer(scan.reason));
  put(dict, "is_float", PyRef(PyBool_FromLong(is_float)));
  return dict;
}

PyRef sizes_to_python(const std::int64_t* sizes, std::size_t count) {
  PyRef list(PyList_New(0));
  for (std::size_t i = 0; i < count; ++i) append(list, integer(sizes[i]));
  return list;
}

PyRef frames_to_python(const trapline_frame* frames, std::size_t count) {
  PyRef list(PyList_New(0));
  for (std::size_t i = 0; i < count; ++i) {
    append(list, PyRef(Py_BuildValue("(Oi)", static_cast<PyObject*>(frames[i].code), frames[i].lasti)));
  }
  return list;
}

PyRef stack_to_python() {
  std::vector<trapline_frame> frames(kMaxFrames);
  if (trapline_frames_without_gil() != 0) {
    return frames_to_python(frames.data(), trapline_frames_walk(frames.data(), kMaxFrames));
  }
  const int count = trapline_frames_with_gil(frames.data(), kMaxFrames);
  PyRef list = frames_to_python(frames.data(), count);
  for (int i = 0; i < count; ++i) Py_DECREF(static_cast<PyObject*>(frames[i].code));
  return list;
}

PyRef value_to_python(const c10::IValue& value) {
  try {
    if (value.isTensor()) return tensor_to_python(value.toTensor());
    if (value.isBool()) return PyRef(PyBool_FromLong(value.toBool()));
    if (value.isInt()) return integer(value.toInt());
    if (value.isDouble()) return PyRef(PyFloat_FromDouble(value.toDouble()));
    if (value.isString()) return text(value.toStringRef());
    if (value.isList()) {
      PyRef list(PyList_New(0));
      for (const c10::IValue& element : value.toListRef()) append(list, value_to_python(element));
      return list;
    }
  } catch (const std::exception&) {
    PyErr_Clear();
  }
  return none();
}

std::string dtype_name(c10::ScalarType type) {
  switch (type) {  // torch's C++ names are those of C, its Python names say the width
    case c10::ScalarType::Byte:
      return "uint8";
    case c10::ScalarType::Char:
      return "int8";
    case c10::ScalarType::Short:
      return "int16";
    case c10::ScalarType::Int:
      return "int32";
    case c10::ScalarType::Long:
      return "int64";
    case c10::ScalarType::Half:
      return "float16";
    case c10::ScalarType::Float:
      return "float32";
    case c10::ScalarType::Double:
      return "float64";
    case c10::ScalarType::ComplexHalf:
      return "complex32";
    case c10::ScalarType::ComplexFloat:
      return "complex64";
    case c10::ScalarType::ComplexDouble:
      return "complex128";
    default:
      break;
  }
  std::string name = c10::toString(type);
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name;
}

PyObject* history_to_python() {
  PyRef list(PyList_New(0));
  for (const CallRecord& call : read_history()) {
    const auto& schema = call.plan->handle.schema();
    PyRef args(PyList_New(0));
    for (int i = 0; i < call.tensors; ++i) {
      const TensorRecord& tensor = call.tensor[i];
      std::string name = schema.arguments()[tensor.argument].name();
      if (tensor.list_position >= 0) name += "[" + std::to_string(tensor.list_position) + "]";
      PyRef dict(PyDict_New());
      put(dict, "name", text(name));
      put(dict, "shape", sizes_to_python(tensor.sizes, std::min<std::size_t>(tensor.dim, kHistoryDims)));
      put(dict, "dtype", text(dtype_name(static_cast<c10::ScalarType>(tensor.dtype))));
      const auto bound = [&](const TensorRecord::Number& n) {
        return tensor.has_range ? number(tensor.is_float, n.integer, n.real) : none();
      };
      put(dict, "min", bound(tensor.min));
      put(dict, "max", bound(tensor.max));
      append(args, std::move(dict));
    }
    PyRef dict(PyDict_New());
    put(dict, "op", text(call.plan->op));
    put(dict, "args", std::move(args));
    put(dict, "frames", frames_to_python(call.frame, call.frames));
    append(list, std::move(dict));
  }
  return list.release();
}

PyObject* remembered_to_python() {
  PyRef list(PyList_New(0));
  for (const Remembered& item : read_remembered()) {
    PyRef dict(PyDict_New());
    put(dict, "contract", text(item.row->id));
    put(dict, "scan", scan_to_python(item.scan));
    put(dict, "frames", frames_to_python(item.frames.data(), item.frames.size()));
    put(dict, "storage", PyRef(PyLong_FromUnsignedLongLong(item.storage)));
    put(dict, "shape", sizes_to_python(item.shape.data(), item.shape.size()));
    if (!item.site.empty()) put(dict, "site", text(item.site));
    append(list, std::move(dict));
  }
  return list.release();
}

}  // namespace trapline::guard
