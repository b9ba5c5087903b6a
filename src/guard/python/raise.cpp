#include "guard/python/raise.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "guard/answer.hpp"
#include "guard/device_faults.hpp"
#include "guard/python/convert.hpp"
#include "guard/python/fault.hpp"
#include "guard/python/torch_python.hpp"

namespace trapline::guard {
namespace {

PyObject* g_handler = nullptr;  // guarded by the GIL

PyRef this_thread_label() {
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return thread_label(name, syscall(SYS_gettid));
}

// The tensor that offends: the argument itself, or the one of the list that the scan names.
const c10::IValue* offender(const Violation& violation, c10::ArrayRef<c10::IValue> arguments) {
  const c10::IValue& argument = arguments[violation.row->argument];
  const int position = violation.scan.list_position;
  if (!argument.isList()) return &argument;
  if (position < 0 || static_cast<std::size_t>(position) >= argument.toListRef().size()) return nullptr;
  return &argument.toListRef()[position];
}

PyRef describe_violation(const Plan& plan, const Violation& violation, const std::string& says,
                         c10::ArrayRef<c10::IValue> arguments) {
  PyRef dict(PyDict_New());
  if (!says.empty()) put(dict, "torch_says", text(torch::processErrorMsg(says)));  // as its own exception
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
  put(dict, "thread", this_thread_label());
  return dict;
}

// When the handler fails, its violation must not pass unseen.
void set_fallback_error(const RowPlan& row, const trapline_scan& scan, const char* why) {
  PyErr_Format(PyExc_IndexError, "%s (%s)", bare_sentence(*row.row, scan).c_str(), why);
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

// True when the handler's answer, if it is no exception, is one that `accept` takes; else the Python error
// that is to be raised is set.
template <class Describe, class Accept>
bool handle(const RowPlan& row, const trapline_scan& scan, const Describe& describe, const Accept& accept) {
  PyRef answer;
  if (g_handler != nullptr) {
    PyRef handler = PyRef::borrowed(g_handler);  // it may uninstall the guard
    PyRef dict = describe();
    if (dict) answer = PyRef(PyObject_CallFunctionObjArgs(handler.get(), dict.get(), nullptr));
  }
  if (answer && PyExceptionInstance_Check(answer.get())) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(answer.get())), answer.get());
    return false;
  }
  if (answer && accept(answer.get())) return true;
  // Ctrl-C and sys.exit() in the handler are the user's; every other failure is ours.
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return false;
  const char* why = answer ? "the handler returned no exception" : "the handler failed";
  if (g_handler == nullptr) why = "there is no handler";
  PyErr_Clear();
  set_fallback_error(row, scan, why);
  return false;
}

// The Python error of a fault. Its text is made when C++ asks for it, as TorchScript does: a program that
// catches the fault may never read it.
class FaultError final : public python_error {
 public:
  // The Python error that is set becomes this one. The caller holds the GIL.
  void take() { PyErr_Fetch(&type, &value, &traceback); }

  const char* what() const noexcept override {
    try {
      const GilAcquire gil;  // guards the text, too: threads may share the exception
      if (message.empty()) const_cast<FaultError*>(this)->message = text_of(*this);
    } catch (...) {
      return "trapline: the text of this fault could not be made";
    }
    return message.c_str();
  }
};

// Returns when `ask` says so, else throws the Python error that it has set.
template <class Ask>
void ask_python(ThreadState& state, const Ask& ask) {
  const BusyScope busy(state);  // the handler may run operations of its own
  FaultError error;
  {
    const GilAcquire gil;
    if (ask()) return;
    error.take();
  }
  throw error;
}

}  // namespace

void set_handler(PyObject* handler) {
  PyObject* old = g_handler;
  Py_XINCREF(handler);
  g_handler = handler;
  Py_XDECREF(old);
}

void answer_violation(ThreadState& state, const Plan& plan, const Violation& violation,
                      const std::string& says, c10::IValue* arguments) {
  const c10::ArrayRef<c10::IValue> all(arguments, plan.handle.schema().arguments().size());
  ask_python(state, [&] {
    return handle(
        *violation.row, violation.scan, [&] { return describe_violation(plan, violation, says, all); },
        [&](PyObject* answer) {
          if (!is_tensor(answer) || offender(violation, all) == nullptr) return false;
          replace(violation, tensor_of(answer), arguments);
          return true;
        });
  });
}

void answer_fault(ThreadState& state, const LateFault& fault) {
  ask_python(state, [&] { return ask_about_fault(fault); });
}

bool ask_about_fault(const LateFault& fault) {
  return handle(
      *fault.record.row, fault.scan, [&] { return describe_fault(fault); },
      [&](PyObject* answer) { return answer == Py_True && fault.record.contained && !fault.record.waited; });
}

}  // namespace trapline::guard
