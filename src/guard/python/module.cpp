// The Python face of the guard: the extension module trapline_guard.
#include <Python.h>
#include <torch/csrc/api/include/torch/version.h>

#include <memory>
#include <string>
#include <vector>

#include "guard/history.hpp"
#include "guard/hooks_device.hpp"
#include "guard/hooks_install.hpp"
#include "guard/python/bench.hpp"
#include "guard/python/compiled.hpp"
#include "guard/python/convert.hpp"
#include "guard/python/device.hpp"
#include "guard/python/frames_link.hpp"
#include "guard/python/raise.hpp"
#include "guard/remember.hpp"

namespace trapline::guard {
namespace {

// The leading "major.minor.patch" of a version: "2.13.0+cpu" and "2.13.0a0" give "2.13.0".
std::string release_of(const std::string& version) {
  std::size_t end = 0;
  int dots = 0;
  while (end < version.size() &&
         (std::isdigit(static_cast<unsigned char>(version[end])) || version[end] == '.')) {
    if (version[end] == '.' && ++dots == 3) break;
    ++end;
  }
  return version.substr(0, end);
}

// torch.__version__ of the running process; "" when torch is not imported.
std::string running_torch() {
  PyRef name(PyUnicode_FromString("torch"));
  PyRef module(name ? PyImport_GetModule(name.get()) : nullptr);
  PyRef version(module ? PyObject_GetAttrString(module.get(), "__version__") : nullptr);
  PyRef plain(version ? PyObject_Str(version.get()) : nullptr);
  const char* bytes = plain ? PyUnicode_AsUTF8(plain.get()) : nullptr;
  const std::string result = bytes == nullptr ? "" : bytes;
  PyErr_Clear();
  return result;
}

bool g_installed = false;  // under the GIL

// Sets a ValueError and returns false where this build must not touch the running torch.
bool fits_process() {
  const std::string running = running_torch();
  if (release_of(running) != release_of(TORCH_VERSION)) {
    PyErr_Format(PyExc_ValueError,
                 "trapline: guard: built for torch %s, but torch %s is running: rebuild it with "
                 "`python -m trapline._build`",
                 TORCH_VERSION, running.empty() ? "(not imported)" : running.c_str());
    return false;
  }
  if (trapline_capi_version() != TRAPLINE_CAPI_VERSION) {
    PyErr_Format(PyExc_ValueError,
                 "trapline: guard: built for C interface %d, but libtrapline has %d: rebuild it with "
                 "`python -m trapline._build`",
                 TRAPLINE_CAPI_VERSION, trapline_capi_version());
    return false;
  }
  return true;
}

PyObject* install(PyObject*, PyObject* handler) {
  if (PyCallable_Check(handler) == 0) {
    PyErr_SetString(PyExc_TypeError, "trapline: guard: install() takes a callable");
    return nullptr;
  }
  if (!fits_process()) return nullptr;
  try {
    if (!g_installed) choose_device();
    install_hooks();
    g_installed = true;
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_RuntimeError, "trapline: guard: cannot hook torch %s: %s", TORCH_VERSION,
                 error.what());
    return nullptr;
  }
  set_handler(handler);
  g_enabled.store(true);
  return PyLong_FromSize_t(hooked_overloads().size());
}

PyObject* uninstall(PyObject*, PyObject*) {
  g_enabled.store(false);
  uninstall_hooks();
  g_installed = false;
  device_uninstalled();
  set_handler(nullptr);
  Py_RETURN_NONE;
}

PyObject* set_enabled(PyObject*, PyObject* on) {
  const int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  g_enabled.store(value != 0 && g_installed);
  Py_RETURN_NONE;
}

PyObject* history(PyObject*, PyObject*) { return history_to_python(); }
PyObject* remembered(PyObject*, PyObject*) { return remembered_to_python(); }

PyObject* info(PyObject*, PyObject*) {
  PyRef dict(PyDict_New());
  put(dict, "torch", text(TORCH_VERSION));
  const std::string python = Py_GetVersion();
  put(dict, "python", text(python.substr(0, python.find(' '))));
  put(dict, "library", text(trapline_version()));
  put(dict, "capi", integer(TRAPLINE_CAPI_VERSION));
  put(dict, "history", integer(kHistory));
  put(dict, "remembered", integer(kRemembered));
  put(dict, "frames", text(trapline_frames_without_gil() != 0 ? "without GIL" : "public API"));
  put(dict, "enabled", PyRef(PyBool_FromLong(enabled())));
  PyRef hooked(PyList_New(0));
  for (const std::string& name : hooked_overloads()) append(hooked, text(name));
  put(dict, "overloads", std::move(hooked));
  put(dict, "device", device_info());
  return dict.release();
}

#ifdef TRAPLINE_BENCH
PyObject* bench(PyObject*, PyObject* args) {
  const char* name = nullptr;
  long long count = 0;
  if (PyArg_ParseTuple(args, "sL", &name, &count) == 0) return nullptr;
  try {
    return PyFloat_FromDouble(bench_operation(name, count));
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
    return nullptr;
  }
}

PyObject* bench_list(PyObject*, PyObject*) {
  PyRef names(PyList_New(0));
  for (const std::string& name : bench_names()) append(names, text(name));
  return names.release();
}

PyObject* record_function(PyObject*, PyObject* on) {
  record_function_noop(PyObject_IsTrue(on) == 1);
  Py_RETURN_NONE;
}
#endif

PyMethodDef kMethods[] = {
    {"install", install, METH_O,
     "install(handler) -> int: hooks torch; handler(violation) returns the exception to raise. Call it while "
     "no "
     "other thread runs torch operations. Returns the number of overloads hooked."},
    {"uninstall", uninstall, METH_NOARGS,
     "uninstall(): removes all hooks, while no other thread runs operations."},
    {"set_enabled", set_enabled, METH_O, "set_enabled(on): switches checking on or off, at any time."},
    {"use_frames", use_frames, METH_O,
     "use_frames(walk): the capsule of trapline_frames for this Python. Without it the public API does."},
    {"history", history, METH_NOARGS, "history() -> list[dict]: the last guarded calls, oldest first."},
    {"remembered", remembered, METH_NOARGS, "remembered() -> list[dict]: possible origins, newest first."},
    {"device_poll", device_poll, METH_O,
     "device_poll(own): raises the oldest fault that the device has reported, if there is one; only one that "
     "this "
     "thread caused where `own` is true."},
    {"device_step", device_step, METH_NOARGS,
     "device_step(): a training step ends: waits for the checks, not for the device, and raises as "
     "device_poll."},
    {"device_backward", device_backward, METH_O,
     "device_backward(roots) -> int: before a backward pass: raises again what the program was told of and "
     "what "
     "is behind one of these tensors, then as device_poll(True). The number of the last launch."},
    {"device_batch", device_batch, METH_O,
     "device_batch(serial): a DataLoader gives out a batch; the calls that follow remember its number."},
    {"device_export", device_export, METH_O,
     "device_export(tensor): its memory is given to another library: waits for the checks, then raises as "
     "device_poll(False), or again what is behind the tensor."},
    {"device_pool", device_pool, METH_O,
     "device_pool(begins): this thread's allocations come from the pool of a CUDA graph, or no longer."},
    {"device_remaining", device_remaining, METH_NOARGS,
     "device_remaining() -> list: the exceptions of all faults that were not raised. Waits for the checks."},
    {"compiled_check", compiled_check, METH_VARARGS,
     "compiled_check(read, ask) -> callable: the kernel of trapline::check, for graphs that were compiled."},
    {"info", info, METH_NOARGS, "info() -> dict: what this build is for and what it hooks."},
#ifdef TRAPLINE_BENCH
    {"bench", bench, METH_VARARGS, "bench(name, count) -> float: nanoseconds per call."},
    {"bench_names", bench_list, METH_NOARGS, "bench_names() -> list[str]"},
    {"record_function", record_function, METH_O, "record_function(on): an empty RecordFunction callback."},
#endif
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef kModule = {PyModuleDef_HEAD_INIT,
                       "trapline_guard",
                       "Trapline's guard for PyTorch.",
                       -1,
                       kMethods,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

// Threads that still run operations while Python shuts down must find the guard off.
bool switch_off_at_exit(PyObject* module) {
  PyRef atexit(PyImport_ImportModule("atexit"));
  PyRef off(atexit ? PyObject_GetAttrString(module, "set_enabled") : nullptr);
  PyRef done(off ? PyObject_CallMethod(atexit.get(), "register", "OO", off.get(), Py_False) : nullptr);
  return static_cast<bool>(done);
}

}  // namespace
}  // namespace trapline::guard

PyMODINIT_FUNC PyInit_trapline_guard() {
  PyObject* module = PyModule_Create(&trapline::guard::kModule);
  if (module != nullptr && !trapline::guard::switch_off_at_exit(module)) Py_CLEAR(module);
  return module;
}
