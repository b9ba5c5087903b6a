#include "guard/python/device.hpp"

#include "guard/device_cache.hpp"
#include "guard/device_check.hpp"
#include "guard/device_contents.hpp"
#include "guard/device_faults.hpp"
#include "guard/device_stream.hpp"
#include "guard/python/raise.hpp"
#include "guard/python/torch_python.hpp"

namespace trapline::guard {
namespace {

// Whether this is a place for the host to learn of a fault: not inside an operation, the handler or a
// capture.
bool may_raise(const ThreadState& state) {
  if (!device_used() || !enabled() || !outermost(state)) return false;
  try {
    return !is_capturing();
  } catch (const std::exception&) {
    return false;
  }
}

void wait_for_checks() {
  Py_BEGIN_ALLOW_THREADS;
  trapline_device_wait();
  Py_END_ALLOW_THREADS;
}

// None, or nullptr with the fault's exception set.
PyObject* raise_one(ThreadState& state, FaultScope whose) {
  while (const auto fault = take_fault(whose)) {
    const BusyScope busy(state);
    if (!ask_about_fault(*fault)) return nullptr;
    fault_dealt_with(*fault);
  }
  Py_RETURN_NONE;
}

}  // namespace

PyObject* device_poll(PyObject*, PyObject* own) {
  ThreadState& state = t_state;
  if (!may_raise(state)) Py_RETURN_NONE;
  return raise_one(state, PyObject_IsTrue(own) == 1 ? FaultScope::kOwn : FaultScope::kAny);
}

PyObject* device_step(PyObject*, PyObject*) {
  ThreadState& state = t_state;
  if (!may_raise(state)) Py_RETURN_NONE;
  wait_for_checks();
  forget_healed();
  PyObject* result = raise_one(state, FaultScope::kAny);
  if (result != nullptr) forget_contents();  // no check is on its way that could want them
  return result;
}

PyObject* device_backward(PyObject*, PyObject* roots) {
  ThreadState& state = t_state;
  if (!may_raise(state)) Py_RETURN_NONE;
  PyRef sequence(PySequence_List(roots));
  if (!sequence) return nullptr;
  for (Py_ssize_t i = 0; i < PyList_Size(sequence.get()); ++i) {
    PyObject* root = PyList_GetItem(sequence.get(), i);
    if (!is_tensor(root)) continue;
    const auto fault = fault_behind(tensor_of(root));
    if (!fault) continue;
    const BusyScope busy(state);
    if (!ask_about_fault(*fault)) return nullptr;
  }
  PyRef told(raise_one(state, FaultScope::kOwn));
  return told ? PyLong_FromUnsignedLongLong(current_order()) : nullptr;
}

PyObject* device_export(PyObject*, PyObject* tensor) {
  ThreadState& state = t_state;
  if (!may_raise(state) || !is_tensor(tensor)) Py_RETURN_NONE;
  wait_for_checks();
  PyRef told(raise_one(state, FaultScope::kAny));
  if (!told) return nullptr;
  const auto fault = fault_behind(tensor_of(tensor));
  if (!fault) return told.release();
  const BusyScope busy(state);
  return ask_about_fault(*fault) ? told.release() : nullptr;
}

PyObject* device_batch(PyObject*, PyObject* serial) {
  const std::int64_t number = PyLong_AsLongLong(serial);
  if (number == -1 && PyErr_Occurred() != nullptr) return nullptr;
  note_batch(number);
  Py_RETURN_NONE;
}

PyObject* device_pool(PyObject*, PyObject* begins) {
  allocate_from_pool(PyObject_IsTrue(begins) == 1);
  Py_RETURN_NONE;
}

PyObject* device_remaining(PyObject*, PyObject*) {
  PyRef list(PyList_New(0));
  ThreadState& state = t_state;
  if (!device_used() || !outermost(state)) return list.release();
  wait_for_checks();
  while (const auto fault = take_fault(FaultScope::kAny)) {
    const BusyScope busy(state);
    if (ask_about_fault(*fault)) continue;
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    append(list, PyRef(value));
  }
  return list.release();
}

PyRef device_info() {
  if (!has_device()) return none();
  const DeviceCounts counts = device_counts();
  PyRef dict(PyDict_New());
  put(dict, "key", text(c10::toString(g_device_key)));
  put(dict, "used", PyRef(PyBool_FromLong(device_used())));
  put(dict, "calls", integer(static_cast<std::int64_t>(counts.calls)));
  put(dict, "launches", integer(static_cast<std::int64_t>(counts.launches)));
  put(dict, "reused", integer(static_cast<std::int64_t>(counts.reused)));
  put(dict, "uncopied", integer(static_cast<std::int64_t>(counts.uncopied)));
  put(dict, "heal_cap", integer(heal_cap()));
  return dict;
}

void device_uninstalled() {
  if (!device_used()) return;
  forget_healed();
  forget_contents();
  forget_faults();
}

}  // namespace trapline::guard
