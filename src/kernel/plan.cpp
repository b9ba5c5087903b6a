#include "kernel/plan.hpp"

#include <initializer_list>

namespace trapline::kernel {
namespace {

// What a plan holds it holds for good: torch may call a kernel as long as the process lives.
PyObject* item(PyObject* spec, const char* name) {
  PyObject* found = PyDict_GetItemString(spec, name);  // borrowed, and no exception where there is none
  if (found == nullptr) PyErr_Format(PyExc_KeyError, "trapline: kernel: a plan without %s", name);
  return found;
}

bool hold(PyObject*& out, PyObject* spec, const char* name) {
  out = item(spec, name);
  Py_XINCREF(out);
  return out != nullptr;
}

// The number of items, all of them held; -1 with an exception: no list, or more than `most`.
int hold_all(PyObject** out, int most, PyObject* spec, const char* name) {
  PyObject* list = item(spec, name);
  if (list == nullptr) return -1;
  const Py_ssize_t count = PyList_Size(list);
  if (count > most) PyErr_Format(PyExc_ValueError, "trapline: kernel: more than %d %s", most, name);
  if (count < 0 || count > most) return -1;
  for (Py_ssize_t i = 0; i < count; ++i) out[i] = Ref::borrow(PyList_GetItem(list, i)).release();
  return static_cast<int>(count);
}

int positions(int* out, int most, PyObject* spec, const char* name, int arguments) {
  PyObject* list = item(spec, name);
  const Py_ssize_t count = list != nullptr ? PyList_Size(list) : -1;
  if (count > most) PyErr_Format(PyExc_ValueError, "trapline: kernel: more than %d %s", most, name);
  if (count < 0 || count > most) return -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const long at = PyLong_AsLong(PyList_GetItem(list, i));
    if (at < 0 || at >= arguments) {
      PyErr_Format(PyExc_ValueError, "trapline: kernel: %s: no argument %ld", name, at);
      return -1;
    }
    out[i] = static_cast<int>(at);
  }
  return static_cast<int>(count);
}

bool read_row(PyObject* tuple, Row& row, int arguments) {
  PyObject* address = nullptr;
  int remember = 0;
  if (PyArg_ParseTuple(tuple, "Oiiiip", &address, &row.argument, &row.bound, &row.dim, &row.also,
                       &remember) == 0)
    return false;
  row.contract = static_cast<const trapline_contract*>(PyLong_AsVoidPtr(address));
  if (row.contract == nullptr) return false;
  row.remember = remember != 0;
  for (const int at : {row.argument, row.bound, row.dim, row.also}) {
    if (at >= -1 && at < arguments) continue;
    PyErr_Format(PyExc_ValueError, "trapline: kernel: a row: no argument %d", at);
    return false;
  }
  return row.argument >= 0;
}

bool fill(Plan& plan, PyObject* spec) {
  plan.arguments = hold_all(plan.names, kMaxArguments, spec, "names");
  if (plan.arguments < 0 || hold_all(plan.defaults, kMaxArguments, spec, "defaults") != plan.arguments)
    return false;
  plan.tensors = positions(plan.tensor, kMaxArguments, spec, "tensors", plan.arguments);
  plan.recorded = positions(plan.record, kMaxRecorded, spec, "recorded", plan.arguments);
  PyObject* rows[kMaxRows];
  plan.rows = hold_all(rows, kMaxRows, spec, "rows");
  if (plan.tensors < 0 || plan.recorded < 0 || plan.rows < 0) return false;
  plan.remember = true;
  for (int i = 0; i < plan.rows; ++i) {
    if (!read_row(rows[i], plan.row[i], plan.arguments)) return false;
    plan.remember = plan.remember && plan.row[i].remember;
  }
  plan.known = PyDict_New();
  return plan.known != nullptr && hold(plan.op, spec, "op") && hold(plan.redispatch, spec, "redispatch") &&
         hold(plan.classify, spec, "classify") && hold(plan.with_tensors, spec, "with_tensors") &&
         hold(plan.answer, spec, "answer") && hold(plan.remembered, spec, "remembered") &&
         hold(plan.on_device, spec, "on_device");
}

}  // namespace

Plan* make_plan(PyObject* spec) {
  if (PyDict_Check(spec) == 0) {
    PyErr_SetString(PyExc_TypeError, "trapline: kernel: a plan is a dictionary");
    return nullptr;
  }
  static_assert(sizeof(Plan) < 4096);
  Plan* plan = static_cast<Plan*>(PyMem_Malloc(sizeof(Plan)));
  if (plan == nullptr) return reinterpret_cast<Plan*>(PyErr_NoMemory());
  *plan = Plan{};
  if (fill(*plan, spec)) return plan;
  if (PyErr_Occurred() == nullptr)
    PyErr_SetString(PyExc_ValueError, "trapline: kernel: a plan that cannot be read");
  return nullptr;  // what it holds is lost: this happens at most once in a process
}

}  // namespace trapline::kernel
