#include "guard/raise.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <unistd.h>

#include <string>

#include "guard/convert.hpp"

namespace trapline::guard {
namespace {

PyObject* g_handler = nullptr;  // guarded by the GIL

PyRef thread_label() {
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return PyRef(PyUnicode_FromFormat("%s/%ld", name, syscall(SYS_gettid)));
}

// The tensor that offends: the argument itself, or the one of the list that the scan names.
const c10::IValue* offender(const Violation& violation, c10::ArrayRef<c10::IValue> arguments) {
  const c10::IValue& argument = arguments[violation.row->argument];
  const int position = violation.scan.list_position;
  if (!argument.isList()) return &argument;
  if (position < 0 || static_cast<std::size_t>(position) >= argument.toListRef().size()) return nullptr;
  return &argument.toListRef()[position];
}

PyRef describe_violation(const Plan& plan, const Violation& violation, c10::ArrayRef<c10::IValue> arguments) {
  PyRef dict(PyDict_New());
  put(dict, "contract", text(violation.row->row->id));
  put(dict, "op", text(plan.op));
  put(dict, "overload", text(plan.overload));
  put(dict, "scan", scan_to_python(violation.scan));
  const c10::IValue* tensor = offender(violation, arguments);
  put(dict, "tensor", tensor == nullptr ? none() : value_to_python(*tensor));
  PyRef args(PyDict_New());
  const auto& names = plan.handle.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    put(args, names[i].name().c_str(), value_to_python(arguments[i]));
  put(dict, "args", std::move(args));
  put(dict, "frames", stack_to_python());
  put(dict, "thread", thread_label());
  return dict;
}

// When the handler fails, its violation must not pass unseen.
void set_fallback_error(const Plan& plan, const Violation& violation, const char* why) {
  const trapline_scan& scan = violation.scan;
  PyErr_Format(PyExc_IndexError,
               "trapline: %s: %lld of %lld elements of '%s' are not valid, the first at %lld (%s)",
               plan.op.c_str(), static_cast<long long>(scan.bad), static_cast<long long>(scan.total),
               violation.row->row->argument, static_cast<long long>(scan.first), why);
}

void replace(const Violation& violation, const at::Tensor& healed, c10::IValue* arguments) {
  c10::IValue& argument = arguments[violation.row->argument];
  if (!argument.isList()) {
    argument = healed;
    return;
  }
  c10::List<c10::IValue> list = argument.toList().copy();  // the list itself is the program's
  list.set(static_cast<std::size_t>(violation.scan.list_position), healed);
  argument = std::move(list);
}

// True when the handler gave an argument to go on with; else the Python error that is to be raised is set.
bool handle(const Plan& plan, const Violation& violation, c10::IValue* arguments) {
  const c10::ArrayRef<c10::IValue> all(arguments, plan.handle.schema().arguments().size());
  PyRef error;
  if (g_handler != nullptr) {
    PyRef handler = PyRef::borrowed(g_handler);  // it may uninstall the guard
    PyRef dict = describe_violation(plan, violation, all);
    if (dict) error = PyRef(PyObject_CallFunctionObjArgs(handler.get(), dict.get(), nullptr));
  }
  if (error && PyExceptionInstance_Check(error.get())) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
    return false;
  }
  if (error && THPVariable_Check(error.get()) && offender(violation, all) != nullptr) {
    replace(violation, THPVariable_Unpack(error.get()), arguments);
    return true;
  }
  // Ctrl-C and sys.exit() in the handler are the user's; every other failure is ours.
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return false;
  const char* why = error ? "the handler returned no exception" : "the handler failed";
  if (g_handler == nullptr) why = "there is no handler";
  PyErr_Clear();
  set_fallback_error(plan, violation, why);
  return false;
}

}  // namespace

void set_handler(PyObject* handler) {
  PyObject* old = g_handler;
  Py_XINCREF(handler);
  g_handler = handler;
  Py_XDECREF(old);
}

void answer_violation(ThreadState& state, const Plan& plan, const Violation& violation,
                      c10::IValue* arguments) {
  const BusyScope busy(state);  // the handler may run operations of its own
  python_error error;
  {
    pybind11::gil_scoped_acquire gil;
    if (handle(plan, violation, arguments)) return;
    error.persist();
  }
  throw error;
}

}  // namespace trapline::guard
