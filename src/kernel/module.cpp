// The extension module trapline_kernel: the guard's kernels where no adapter fits this torch and Python. One
// binary for all: CPython's limited API, no header and no symbol of torch. What is rare is Python's part
// (python/trapline/_guard): which operations, what follows a violation, the device.
#include "kernel/call.hpp"
#include "kernel/history.hpp"
#include "kernel/library.hpp"
#include "kernel/python.hpp"
#include "kernel/view.hpp"
#include "kernel/watch.hpp"

namespace trapline::kernel {
namespace {

PyObject* run(PyObject* self, PyObject* args, PyObject* kwargs) {
  const auto* plan = static_cast<const Plan*>(PyCapsule_GetPointer(self, nullptr));
  return plan != nullptr ? call_kernel(*plan, args, kwargs) : nullptr;
}

PyMethodDef kKernel = {"kernel", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run)),
                       METH_VARARGS | METH_KEYWORDS, nullptr};

PyObject* prepare(PyObject*, PyObject* args) {
  PyObject *torch = nullptr, *check = nullptr;
  int version = 0;
  if (PyArg_ParseTuple(args, "OOi", &torch, &check, &version) == 0) return nullptr;
  if (version != TRAPLINE_CAPI_VERSION) {
    PyErr_Format(PyExc_ImportError,
                 "trapline: kernel: built for C interface %d, but libtrapline has %d: install Trapline again",
                 TRAPLINE_CAPI_VERSION, version);
    return nullptr;
  }
  g_library.check = reinterpret_cast<decltype(g_library.check)>(PyLong_AsVoidPtr(check));
  if (g_library.check == nullptr) return nullptr;
  if (!prepare_views(torch)) return nullptr;
  return PyBool_FromLong(borrows_tensors());
}

PyObject* make(PyObject*, PyObject* spec) {
  Plan* plan = make_plan(spec);
  const Ref self(plan != nullptr ? PyCapsule_New(plan, nullptr, nullptr) : nullptr);
  return self ? PyCFunction_NewEx(&kKernel, self.get(), nullptr) : nullptr;
}

PyObject* set_enabled(PyObject*, PyObject* on) {
  const int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  g_enabled = value != 0;
  Py_RETURN_NONE;
}

PyObject* set_busy(PyObject*, PyObject* on) {
  const int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  t_state.busy += value != 0 ? 1 : -1;
  Py_RETURN_NONE;
}

PyObject* enter(PyObject*, PyObject* by) {
  const long value = PyLong_AsLong(by);
  if (value == -1 && PyErr_Occurred() != nullptr) return nullptr;
  t_state.depth += static_cast<int>(value);
  Py_RETURN_NONE;
}

PyObject* is_outermost(PyObject*, PyObject*) {
  return PyBool_FromLong(g_enabled && t_state.busy == 0 && t_state.depth == 0);
}

PyObject* history(PyObject*, PyObject*) { return history_to_python(); }

PyObject* forget(PyObject*, PyObject*) {
  forget_history();
  Py_RETURN_NONE;
}

PyMethodDef kMethods[] = {
    {"prepare", prepare, METH_VARARGS,
     "prepare(torch, check, version) -> bool: the module, the address of trapline_check, its version. "
     "Whether tensors "
     "are borrowed through DLPack."},
    {"make", make, METH_O,
     "make(plan) -> callable: a kernel for torch.library, of a dictionary. It is kept for good."},
    {"set_enabled", set_enabled, METH_O, "set_enabled(on): switches checking on or off, at any time."},
    {"set_busy", set_busy, METH_O,
     "set_busy(on): this thread checks nothing until the same with False. Nests."},
    {"enter", enter, METH_O, "enter(by): 1 and -1 around an operation that was checked."},
    {"is_outermost", is_outermost, METH_NOARGS,
     "is_outermost() -> bool: whether a call of this thread is checked now."},
    {"history", history, METH_NOARGS, "history() -> list[dict]: the last guarded calls, oldest first."},
    {"forget", forget, METH_NOARGS, "forget(): drops the history."},
    {"passes", watch_passes, METH_O, "passes(loss) -> bool: a finite loss, the first of its step."},
    {"arrived", watch_arrived, METH_NOARGS, "arrived() -> bool: the probe's gradient is finite."},
    {"stepped", watch_stepped, METH_O, "stepped(optimizer) -> bool: the step was counted here."},
    {"gate_type", watch_gate_type, METH_NOARGS,
     "gate_type() -> type: what an outermost module is called through."},
    {"keep", watch_keep, METH_VARARGS,
     "keep(module, args, kwargs, more) -> bool: a call, until its step was taken."},
    {"arm", watch_arm, METH_VARARGS,
     "arm(optimizer, probe, grad_enabled, any_autocast, next): losses pass and steps are counted."},
    {"drain", watch_drain, METH_NOARGS,
     "drain() -> (steps, losses, loss, calls): what was counted since; nothing passes any more."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef kModule = {PyModuleDef_HEAD_INIT,
                       "trapline_kernel",
                       "Trapline's guard for any PyTorch and Python.",
                       -1,
                       kMethods,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace
}  // namespace trapline::kernel

PyMODINIT_FUNC PyInit_trapline_kernel() { return PyModule_Create(&trapline::kernel::kModule); }
