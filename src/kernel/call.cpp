#include "kernel/call.hpp"

#include "kernel/history.hpp"
#include "kernel/library.hpp"
#include "kernel/view.hpp"

namespace trapline::kernel {
namespace {

class Scope {
 public:
  Scope(int& counter, bool on) : counter_(counter), by_(on ? 1 : 0) { counter_ += by_; }
  ~Scope() { counter_ -= by_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  int& counter_;
  const int by_;
};

// The arguments of a call by their positions in the schema. Borrowed.
class Values {
 public:
  Values(const Plan& plan, PyObject* args, PyObject* kwargs)
      : plan_(plan), args_(args), kwargs_(kwargs), count_(PyTuple_Size(args) - 1) {}

  PyObject* at(int position) const {
    if (position < count_) return PyTuple_GetItem(args_, position + 1);
    PyObject* given = kwargs_ != nullptr ? PyDict_GetItem(kwargs_, plan_.names[position]) : nullptr;
    return given != nullptr ? given
                            : plan_.defaults[position];  // torch leaves out those that have their default
  }

 private:
  const Plan& plan_;
  PyObject* args_;
  PyObject* kwargs_;
  Py_ssize_t count_;
};

// A row's argument, bound, dim and also, as the library takes them.
class Described {
 public:
  Described(const Values& values, const Row& row) : row_(row) {
    const int at[] = {row.argument, row.bound, row.dim, row.also};
    for (int part = 0; part < 4; ++part)
      is_there_[part] = at[part] >= 0 && describe(values.at(at[part]), part_[part], room_[part]);
  }
  bool can_be_judged() const { return is_there_[0]; }
  const trapline_arg* part(int which) const { return is_there_[which] ? &part_[which] : nullptr; }
  int judge(trapline_scan& scan) const {
    return g_library.check(row_.contract, part(0), part(1), part(2), part(3), &scan);
  }

 private:
  const Row& row_;
  trapline_arg part_[4] = {};
  bool is_there_[4] = {};
  Room room_[4];
};

void record_arguments(Entry& entry, const Plan& plan, const Values& values) {
  Room room;
  for (int i = 0; i < plan.recorded; ++i) {
    const int at = plan.record[i];
    PyObject* value = values.at(at);
    room.used = 0;
    trapline_arg described = {};
    if (value == Py_None || !describe(value, described, room)) continue;
    if (described.kind == TRAPLINE_ARG_TENSOR) record_tensor(entry, at, -1, value, described.tensor);
    if (described.kind != TRAPLINE_ARG_LIST) continue;
    for (int k = 0; k < described.list_size; ++k) {
      if (described.list[k].dim < 0) continue;
      const Ref tensor(PySequence_GetItem(value, k));
      if (tensor) record_tensor(entry, at, k, tensor.get(), described.list[k]);
      PyErr_Clear();
    }
  }
}

enum class Verdict { kFine, kViolated, kFailed };  // kFailed: with an exception set

struct Checked {
  Verdict verdict = Verdict::kFine;
  bool applied = false;  // a row
};

// A cast that made nonsense of NaN is no fault; Python keeps it as the origin of a later one.
bool remember(const Plan& plan, int row, PyObject* args, PyObject* kwargs) {
  const Ref done(
      PyObject_CallFunction(plan.remembered, "iOO", row, args, kwargs != nullptr ? kwargs : Py_None));
  return static_cast<bool>(done);
}

Checked check(const Plan& plan, PyObject* args, PyObject* kwargs) {
  const Values values(plan, args, kwargs);
  Entry* entry = plan.remember ? nullptr : &record(plan);
  if (entry != nullptr) record_arguments(*entry, plan, values);
  Checked out;
  for (int i = 0; i < plan.rows; ++i) {
    const Row& row = plan.row[i];
    const Described described(values, row);
    if (!described.can_be_judged()) continue;
    trapline_scan scan = {};
    const int verdict = described.judge(scan);
    if (verdict == TRAPLINE_NOT_APPLICABLE) continue;
    out.applied = true;
    if (entry != nullptr) note_range(*entry, row.argument, scan);
    if (verdict != TRAPLINE_VIOLATED) continue;
    if (row.remember && remember(plan, i, args, kwargs)) continue;
    out.verdict = row.remember ? Verdict::kFailed : Verdict::kViolated;
    return out;
  }
  return out;
}

// The entry of `known` for this key set: (key set below, where it leads). Borrowed.
PyObject* look_up(const Plan& plan, PyObject* keys) {
  static PyObject* const raw_repr = PyUnicode_InternFromString("raw_repr");
  const Ref raw(PyObject_CallMethodObjArgs(keys, raw_repr, nullptr));
  if (!raw) return nullptr;
  PyObject* known = PyDict_GetItemWithError(plan.known, raw.get());
  if (known != nullptr || PyErr_Occurred() != nullptr) return known;
  const Ref made(PyObject_CallFunctionObjArgs(plan.classify, keys, nullptr));
  if (!made || PyTuple_Check(made.get()) == 0 || PyTuple_Size(made.get()) != 2) {
    if (PyErr_Occurred() == nullptr)
      PyErr_SetString(PyExc_TypeError, "trapline: kernel: classify() gives a pair");
    return nullptr;
  }
  return PyDict_SetItem(plan.known, raw.get(), made.get()) == 0 ? made.get() : nullptr;
}

Ref with_first(PyObject* first, PyObject* args) {
  const Py_ssize_t count = PyTuple_Size(args);
  Ref out(PyTuple_New(count));
  for (Py_ssize_t i = 0; out && i < count; ++i) {
    PyObject* one = i == 0 ? first : PyTuple_GetItem(args, i);
    PyTuple_SetItem(out.get(), i, Ref::borrow(one).release());
  }
  return out;
}

// Whether torch handed over a number for a tensor that it was made of.
bool has_numbers(const Plan& plan, PyObject* args) {
  const Py_ssize_t count = PyTuple_Size(args) - 1;
  for (int i = 0; i < plan.tensors; ++i) {
    if (plan.tensor[i] >= count) continue;
    PyObject* value = PyTuple_GetItem(args, plan.tensor[i] + 1);
    if (PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value)) return true;
  }
  return false;
}

PyObject* on_host(const Plan& plan, Ref args, Ref kwargs) {
  ThreadState& state = t_state;
  Checked checked;
  {
    const Scope busy(state.busy, true);
    checked = check(plan, args.get(), kwargs.get());
    if (checked.verdict == Verdict::kViolated) {
      const Ref answer(
          PyObject_CallFunctionObjArgs(plan.answer, args.get(), kwargs ? kwargs.get() : Py_None, nullptr));
      if (!answer) return nullptr;
      if (PyTuple_Check(answer.get()) ==
          0) {  // an exception: raised here, without Python's part in its traceback
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(answer.get())), answer.get());
        return nullptr;
      }
      args = Ref::borrow(PyTuple_GetItem(answer.get(), 0));
      kwargs = Ref::borrow(PyTuple_GetItem(answer.get(), 1));
      if (!args || !kwargs) return nullptr;
    }
  }
  if (checked.verdict == Verdict::kFailed) return nullptr;
  const Scope depth(state.depth,
                    checked.applied);  // what it calls is checked where no row of its own applied
  return PyObject_Call(plan.redispatch, args.get(), kwargs.get());
}

// Python's part in a traceback says nothing to the user.
void drop_traceback() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value != nullptr) PyException_SetTraceback(value, Py_None);
  Py_XDECREF(trace);
  PyErr_Restore(type, value, nullptr);
}

PyObject* on_device(const Plan& plan, PyObject* args, PyObject* kwargs) {
  if (!plan.remember) record_arguments(record(plan), plan, Values(plan, args, kwargs));
  PyObject* result =
      PyObject_CallFunctionObjArgs(plan.on_device, args, kwargs != nullptr ? kwargs : Py_None, nullptr);
  if (result == nullptr) drop_traceback();
  return result;
}

}  // namespace

PyObject* call_kernel(const Plan& plan, PyObject* given, PyObject* kwargs) {
  if (PyTuple_Size(given) < 1) {
    PyErr_SetString(PyExc_TypeError, "trapline: kernel: called without a key set");
    return nullptr;
  }
  PyObject* known = look_up(plan, PyTuple_GetItem(given, 0));
  if (known == nullptr) return nullptr;
  Ref args = with_first(PyTuple_GetItem(known, 0), given);
  if (args && has_numbers(plan, args.get()))
    args = Ref(PyObject_CallFunctionObjArgs(plan.with_tensors, args.get(), nullptr));
  if (!args) return nullptr;
  const ThreadState& state = t_state;
  const auto leads = !g_enabled || state.busy != 0 || state.depth != 0
                         ? Leads::kElsewhere
                         : static_cast<Leads>(PyLong_AsLong(PyTuple_GetItem(known, 1)));
  if (leads == Leads::kHost) return on_host(plan, static_cast<Ref&&>(args), Ref::borrow(kwargs));
  if (leads == Leads::kDevice) return on_device(plan, args.get(), kwargs);
  return PyObject_Call(plan.redispatch, args.get(), kwargs);
}

}  // namespace trapline::kernel
