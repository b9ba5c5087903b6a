#include "kernel/history.hpp"

#include "kernel/plan.hpp"
#include "kernel/view.hpp"

namespace trapline::kernel {

namespace {
constexpr int kHistory = 20;
constexpr int kMaxDims = 8;
constexpr int kMaxFrames = 24;
}  // namespace

struct Entry {
  struct Tensor {
    int argument, position;  // position: in a list; -1: none
    int dim;
    std::int64_t sizes[kMaxDims];
    const char* dtype;
    bool has_range, is_float;
    double fmin, fmax;
    std::int64_t imin, imax;
  };
  struct Frame {
    PyObject* code;  // owned
    PyObject* last;  // owned: f_lasti
  };
  const Plan* plan = nullptr;
  int tensors = 0, frames = 0;
  Tensor tensor[kMaxRecorded] = {};
  Frame frame[kMaxFrames] = {};
};

namespace {

Entry g_entries[kHistory];
int g_next = 0;

void clear(Entry& entry) {
  // First taken out, then released: the end of a code object may run anything.
  Entry::Frame frames[kMaxFrames];
  const int count = entry.frames;
  for (int i = 0; i < count; ++i) frames[i] = entry.frame[i];
  entry.frames = entry.tensors = 0;
  entry.plan = nullptr;
  for (int i = 0; i < count; ++i) {
    Py_DECREF(frames[i].code);
    Py_DECREF(frames[i].last);
  }
}

void capture(Entry& entry) {
  static PyObject* const code_name = PyUnicode_InternFromString("f_code");
  static PyObject* const last_name = PyUnicode_InternFromString("f_lasti");
  static PyObject* const back_name = PyUnicode_InternFromString("f_back");
  Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && frame.get() != Py_None && entry.frames < kMaxFrames) {
    Ref code(PyObject_GetAttr(frame.get(), code_name));
    Ref last(PyObject_GetAttr(frame.get(), last_name));
    if (!code || !last) break;
    entry.frame[entry.frames++] = {code.release(), last.release()};
    frame = Ref(PyObject_GetAttr(frame.get(), back_name));
  }
  PyErr_Clear();
}

bool put(PyObject* dict, const char* key, PyObject* owned) {
  const Ref value(owned);
  return value && PyDict_SetItemString(dict, key, value.get()) == 0;
}

PyObject* name_of(const Plan& plan, const Entry::Tensor& tensor) {
  PyObject* name = plan.names[tensor.argument];
  if (tensor.position < 0) return Ref::borrow(name).release();
  return PyUnicode_FromFormat("%U[%d]", name, tensor.position);
}

PyObject* limit(const Entry::Tensor& tensor, double f, std::int64_t i) {
  if (!tensor.has_range) return Ref::borrow(Py_None).release();
  return tensor.is_float ? PyFloat_FromDouble(f) : PyLong_FromLongLong(i);
}

PyObject* tensor_to_python(const Plan& plan, const Entry::Tensor& tensor) {
  Ref dict(PyDict_New());
  const int dims = tensor.dim < kMaxDims ? tensor.dim : kMaxDims;
  Ref shape(PyList_New(dims));
  for (int d = 0; shape && d < dims; ++d)
    PyList_SetItem(shape.get(), d, PyLong_FromLongLong(tensor.sizes[d]));
  const bool done = dict && put(dict.get(), "name", name_of(plan, tensor)) &&
                    put(dict.get(), "shape", shape.release()) &&
                    put(dict.get(), "dtype", PyUnicode_FromString(tensor.dtype)) &&
                    put(dict.get(), "min", limit(tensor, tensor.fmin, tensor.imin)) &&
                    put(dict.get(), "max", limit(tensor, tensor.fmax, tensor.imax));
  return done ? dict.release() : nullptr;
}

PyObject* entry_to_python(const Entry& entry) {
  Ref dict(PyDict_New()), args(PyList_New(0)), frames(PyList_New(0));
  if (!dict || !args || !frames) return nullptr;
  for (int i = 0; i < entry.tensors; ++i) {
    const Ref one(tensor_to_python(*entry.plan, entry.tensor[i]));
    if (!one || PyList_Append(args.get(), one.get()) != 0) return nullptr;
  }
  for (int i = 0; i < entry.frames; ++i) {
    const Ref one(PyTuple_Pack(2, entry.frame[i].code, entry.frame[i].last));
    if (!one || PyList_Append(frames.get(), one.get()) != 0) return nullptr;
  }
  const bool done = put(dict.get(), "op", Ref::borrow(entry.plan->op).release()) &&
                    put(dict.get(), "args", args.release()) && put(dict.get(), "frames", frames.release());
  return done ? dict.release() : nullptr;
}

}  // namespace

Entry& record(const Plan& plan) {
  Entry& entry = g_entries[g_next];
  g_next = (g_next + 1) % kHistory;
  clear(entry);
  entry.plan = &plan;
  capture(entry);
  return entry;
}

void record_tensor(Entry& entry, int argument, int position, PyObject* tensor,
                   const trapline_tensor& described) {
  if (entry.tensors == kMaxRecorded) return;
  Entry::Tensor& out = entry.tensor[entry.tensors++];
  out = {};
  out.argument = argument;
  out.position = position;
  out.dim = described.dim;
  out.dtype = dtype_name(tensor, described);
  for (int d = 0; d < described.dim && d < kMaxDims; ++d) out.sizes[d] = described.sizes[d];
}

void note_range(Entry& entry, int argument, const trapline_scan& scan) {
  if (scan.total <= 0) return;
  for (int i = 0; i < entry.tensors; ++i) {
    Entry::Tensor& tensor = entry.tensor[i];
    if (tensor.argument != argument || (scan.list_position >= 0 && tensor.position != scan.list_position))
      continue;
    tensor.has_range = true;
    tensor.is_float = scan.is_float != 0;
    tensor.fmin = scan.fmin;
    tensor.fmax = scan.fmax;
    tensor.imin = scan.imin;
    tensor.imax = scan.imax;
  }
}

PyObject* history_to_python() {
  Ref list(PyList_New(0));
  for (int i = 0; list && i < kHistory; ++i) {
    const Entry& entry = g_entries[(g_next + i) % kHistory];
    if (entry.plan == nullptr) continue;
    const Ref one(entry_to_python(entry));
    if (!one || PyList_Append(list.get(), one.get()) != 0) return nullptr;
  }
  return list.release();
}

void forget_history() {
  for (Entry& entry : g_entries) clear(entry);
}

}  // namespace trapline::kernel
