#include "kernel/watch.hpp"

#include <structmember.h>
#include <time.h>

#include <cstddef>

#include "kernel/view.hpp"

namespace trapline::kernel {
namespace {

constexpr int kKept = 50;   // losses: KEPT in python/trapline/_watch/history.py
constexpr int kSteps = 8;   // between two looks at the clock
constexpr int kCalls = 16;  // of modules in one step: MAX_CALLS in python/trapline/_watch/again.py

struct Call {
  PyObject *module, *args, *kwargs,
      *more;  // a weak reference; what was given; what Python knows of it, or nullptr
  bool bare;  // the module has no parameters: a loss, as a rule
};

// What an outermost module's calls go through: base of Root in python/trapline/_watch/roots.py.
struct Gate {
  PyObject_HEAD PyObject* module;  // a weak reference
  char trained;                    // from then on what is not training is evaluation
  char draws;                      // random numbers: Python keeps its calls
  char bare;                       // no parameters
};

// A function without arguments, called without what Python puts around a call where it is one of C.
struct Question {
  PyObject* function = nullptr;
  PyCFunction in_c = nullptr;
};

struct Watch {
  bool armed = false;
  bool has_loss = false;          // of the step that is being made
  bool on_device = false;         // losses are there: they are counted, and not read
  PyObject* optimizer = nullptr;  // a weak reference
  Py_ssize_t group = -1, at = 0;  // where it has the parameter that is looked at; -1: none
  PyObject* every = nullptr;      // the classes of parameters, where all are looked at after a step
  double loss = 0;
  double next = 0;
  long long steps = 0;
  double losses[kKept] = {};  // that of step n is in n % kKept
  Call calls[kCalls] = {};
  int calls_begin = 0, calls_count = 0;
  Py_ssize_t holders =
      0;  // of a gate while it is called, where nobody else has a copy of its module's members
  Question grad_enabled, any_autocast;
  PyObject *training = nullptr, *call_impl = nullptr, *grad = nullptr, *noted = nullptr;  // names
  PyObject *locals = nullptr, *self = nullptr, *members = nullptr, *place = nullptr;      // names, too
  PyObject *is_cuda = nullptr, *groups = nullptr, *parameters = nullptr;
} g_watch;  // under the GIL

double now() {
  timespec at{};
  ::clock_gettime(CLOCK_MONOTONIC, &at);  // what time.perf_counter() is
  return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9;
}

// Without a function of the C++ runtime: the difference of a number with itself is 0 only where it is finite.
bool is_finite(double value) { return value - value == 0; }

// A loss like that is looked at: what an optimizer keeps of its gradients may overflow (_watch/state.py).
bool is_huge(double value) { return value > 1.8e19 || value < -1.8e19; }

void keep_in(PyObject*& place, PyObject* value) {
  PyObject* old = place;
  Py_INCREF(value);
  place = value;
  Py_XDECREF(old);
}

Call take_oldest() {
  const Call call = g_watch.calls[g_watch.calls_begin];
  g_watch.calls_begin = (g_watch.calls_begin + 1) % kCalls;
  --g_watch.calls_count;
  return call;
}

// May run anything, also this.
void release(const Call& call) {
  Py_XDECREF(call.module);
  Py_XDECREF(call.args);
  Py_XDECREF(call.kwargs);
  Py_XDECREF(call.more);
}

void forget_calls() {
  while (g_watch.calls_count > 0) release(take_oldest());
}

void add_newest(const Call& call) {
  g_watch.calls[(g_watch.calls_begin + g_watch.calls_count++) % kCalls] = call;
}

void keep_call(const Call& call) {
  Py_XINCREF(call.module);
  Py_XINCREF(call.args);
  Py_XINCREF(call.kwargs);
  Py_XINCREF(call.more);
  if (g_watch.calls_count == kCalls) release(take_oldest());
  add_newest(call);
}

// What one module with parameters was given is the program's batch, which it holds itself. What several were
// given is in part made by others, and memory that backward would use again: it costs a hundredth of a small
// step to hold that.
void keep_batch_only() {
  Call bare[kCalls];
  int dropped = 0;
  for (int left = g_watch.calls_count; left > 0; --left) {
    const Call call = take_oldest();
    if (call.bare) {
      bare[dropped++] = call;
    } else {
      add_newest(call);
    }
  }
  for (int i = 0; i < dropped; ++i) release(bare[i]);
  if (g_watch.calls_count > 1) forget_calls();
}

void ask_later(Question& question, PyObject* function) {
  keep_in(question.function, function);
  const bool is_in_c =
      PyObject_TypeCheck(function, &PyCFunction_Type) != 0 && PyCFunction_GetFlags(function) == METH_NOARGS;
  question.in_c = is_in_c ? PyCFunction_GetFunction(function) : nullptr;
}

// -1, with an exception set: it failed.
int answer_of(const Question& question) {
  const Ref answer(question.in_c != nullptr ? question.in_c(PyCFunction_GetSelf(question.function), nullptr)
                                            : PyObject_CallObject(question.function, nullptr));
  return answer ? PyObject_IsTrue(answer.get()) : -1;
}

// Whether it was seen to here, as far as keeping goes. What fails is no failure of the program's: not kept.
bool keeps(Gate& gate, PyObject* module, PyObject* args, PyObject* kwargs) {
  const Ref training(PyObject_GetAttr(module, g_watch.training));
  if (!training) {
    PyErr_Clear();
    return true;
  }
  if (training.get() == Py_True) {
    gate.trained = 1;
  } else if (gate.trained != 0) {
    return true;
  }
  if (!g_watch.armed || gate.draws != 0) return false;
  const int trains = answer_of(g_watch.grad_enabled);
  const int casts = trains > 0 ? answer_of(g_watch.any_autocast) : 0;
  if (trains < 0 || casts < 0) PyErr_Clear();
  if (casts > 0) return false;  // its dtype is to be told
  if (trains > 0 && casts == 0) keep_call({gate.module, args, kwargs, nullptr, gate.bare != 0});
  return true;
}

// Who else came to this gate: a module that was given a copy of the members of the gate's own module, or
// shares them as a proxy does. Whom a call is for only the caller knows, Module._wrapped_call_impl. It is
// asked, which takes half a microsecond, only where more hold the gate than its module and the watch.
Ref stranger_to(PyObject* gate, PyObject* module) {
  const Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  const Ref locals(frame ? PyObject_GetAttr(frame.get(), g_watch.locals) : nullptr);
  Ref caller(locals ? PyObject_GetItem(locals.get(), g_watch.self) : nullptr);
  if (caller && caller.get() == module) return Ref();
  const Ref members(caller ? PyObject_GetAttr(caller.get(), g_watch.members) : nullptr);
  const bool has_it =
      members && PyDict_Check(members.get()) && PyDict_GetItemWithError(members.get(), g_watch.place) == gate;
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return has_it ? static_cast<Ref&&>(caller) : Ref();
}

// A module that is gone leaves a gate only to copies; a proxy has the very members.
bool may_be_shared(PyObject* gate, PyObject* module) {
  if (module == Py_None || Py_REFCNT(gate) > g_watch.holders) return true;
  const Ref members(PyObject_GetAttr(module, g_watch.members));
  if (!members) PyErr_Clear();
  return !members || Py_REFCNT(members.get()) > 2;  // the module's, and this one
}

PyObject* gate_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  auto& gate = *reinterpret_cast<Gate*>(self);
  const Ref module = Ref::borrow(gate.module != nullptr ? PyWeakref_GetObject(gate.module) : Py_None);
  if (g_watch.holders == 0) {  // the first call: _learn_holders in python/trapline/_watch/roots.py
    g_watch.holders = Py_REFCNT(self);
    Py_RETURN_NONE;
  }
  const Ref stranger = may_be_shared(self, module.get()) ? stranger_to(self, module.get()) : Ref();
  if (stranger) {
    const Ref own(PyObject_GetAttr(stranger.get(), g_watch.call_impl));
    return own ? PyObject_Call(own.get(), args, kwargs) : nullptr;
  }
  const bool seen = keeps(gate, module.get(), args, kwargs);
  const Ref call(PyObject_GetAttr(seen ? module.get() : self, seen ? g_watch.call_impl : g_watch.noted));
  return call ? PyObject_Call(call.get(), args, kwargs) : nullptr;
}

void gate_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<Gate*>(self)->module);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyMemberDef kGateMembers[] = {
    {"module", T_OBJECT, offsetof(Gate, module), 0, nullptr},
    {"trained", T_BOOL, offsetof(Gate, trained), 0, nullptr},
    {"draws", T_BOOL, offsetof(Gate, draws), 0, nullptr},
    {"bare", T_BOOL, offsetof(Gate, bare), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot kGateSlots[] = {
    {Py_tp_call, reinterpret_cast<void*>(gate_call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(gate_dealloc)},
    {Py_tp_members, kGateMembers},
    {0, nullptr},
};

PyType_Spec kGateSpec = {"trapline_kernel.Gate", sizeof(Gate), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                         kGateSlots};

}  // namespace

PyObject* watch_gate_type(PyObject*, PyObject*) {
  g_watch.training = PyUnicode_InternFromString("training");
  g_watch.call_impl = PyUnicode_InternFromString("_call_impl");
  g_watch.noted = PyUnicode_InternFromString("_noted");
  g_watch.locals = PyUnicode_InternFromString("f_locals");
  g_watch.self = PyUnicode_InternFromString("self");
  g_watch.members = PyUnicode_InternFromString("__dict__");
  g_watch.place = PyUnicode_InternFromString("_compiled_call_impl");
  return PyType_FromSpec(&kGateSpec);
}

PyObject* watch_keep(PyObject*, PyObject* args) {
  Call call{};
  if (PyArg_ParseTuple(args, "OOOO", &call.module, &call.args, &call.kwargs, &call.more) == 0) return nullptr;
  if (!g_watch.armed) Py_RETURN_FALSE;
  keep_call(call);
  Py_RETURN_TRUE;
}

PyObject* watch_passes(PyObject*, PyObject* loss) {
  if (!g_watch.armed || g_watch.has_loss) Py_RETURN_FALSE;
  if (g_watch.on_device) {
    const Ref there(PyObject_GetAttr(loss, g_watch.is_cuda));
    if (!there) PyErr_Clear();
    g_watch.has_loss = there.get() == Py_True;
    return PyBool_FromLong(g_watch.has_loss);
  }
  if (!read_number(loss, g_watch.loss) || !is_finite(g_watch.loss) || is_huge(g_watch.loss)) Py_RETURN_FALSE;
  g_watch.has_loss = true;
  if (g_watch.calls_count > 1) keep_batch_only();
  Py_RETURN_TRUE;
}

// The small parameter whose gradient is looked at, in its place in the optimizer (_watch/held.py says why);
// empty where it is gone.
Ref probed() {
  if (g_watch.group < 0) return Ref();
  PyObject* optimizer = PyWeakref_GetObject(g_watch.optimizer);
  const Ref groups(optimizer != Py_None ? PyObject_GetAttr(optimizer, g_watch.groups) : nullptr);
  PyErr_Clear();
  if (!groups || !PyList_CheckExact(groups.get()) || g_watch.group >= PyList_Size(groups.get())) return Ref();
  PyObject* group = PyList_GetItem(groups.get(), g_watch.group);
  PyObject* list = PyDict_CheckExact(group) ? PyDict_GetItem(group, g_watch.parameters) : nullptr;
  if (list == nullptr || !PyList_CheckExact(list) || g_watch.at >= PyList_Size(list)) return Ref();
  return Ref::borrow(PyList_GetItem(list, g_watch.at));
}

bool is_one_of(PyTypeObject* type, PyObject* classes) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(classes); ++i)
    if (PyTuple_GetItem(classes, i) == reinterpret_cast<PyObject*>(type)) return true;
  return false;
}

// After a step that is none of PyTorch's: it may divide by what is 0 in one weight alone.
bool any_weight_is_bad() {
  constexpr std::int64_t kMost = 1 << 16;  // elements in one step
  std::int64_t left = kMost;
  PyObject* optimizer = PyWeakref_GetObject(g_watch.optimizer);
  const Ref groups(optimizer != Py_None ? PyObject_GetAttr(optimizer, g_watch.groups) : nullptr);
  PyErr_Clear();
  if (!groups || !PyList_CheckExact(groups.get())) return false;
  for (Py_ssize_t i = 0; i < PyList_Size(groups.get()); ++i) {
    PyObject* group = PyList_GetItem(groups.get(), i);
    PyObject* list = PyDict_CheckExact(group) ? PyDict_GetItem(group, g_watch.parameters) : nullptr;
    if (list == nullptr || !PyList_CheckExact(list)) continue;
    for (Py_ssize_t k = 0; k < PyList_Size(list); ++k) {
      const Ref weight = Ref::borrow(PyList_GetItem(list, k));
      if (is_one_of(Py_TYPE(weight.get()), g_watch.every) && holds_bad(weight.get(), true, left)) return true;
    }
  }
  return false;
}

PyObject* watch_arrived(PyObject*, PyObject*) {
  if (!g_watch.armed || g_watch.on_device) Py_RETURN_TRUE;  // Python has seen to this step, or nobody does
  const Ref probe = probed();
  if (!probe) Py_RETURN_TRUE;
  const Ref grad(PyObject_GetAttr(probe.get(), g_watch.grad));
  if (!grad) PyErr_Clear();
  return PyBool_FromLong(!grad || grad.get() == Py_None || !holds_bad(grad.get()));
}

PyObject* watch_stepped(PyObject*, PyObject* optimizer) {
  if (!g_watch.armed || !g_watch.has_loss) Py_RETURN_FALSE;
  if (PyWeakref_GetObject(g_watch.optimizer) != optimizer) Py_RETURN_FALSE;
  if (g_watch.steps % kSteps == kSteps - 1 && now() >= g_watch.next) Py_RETURN_FALSE;
  if (!g_watch.on_device) {
    const Ref probe = probed();
    if (probe && holds_bad(probe.get(), true)) Py_RETURN_FALSE;
    if (PyTuple_Check(g_watch.every) && any_weight_is_bad()) Py_RETURN_FALSE;
  }
  g_watch.losses[g_watch.steps % kKept] = g_watch.loss;
  ++g_watch.steps;
  g_watch.has_loss = false;
  forget_calls();
  Py_RETURN_TRUE;
}

PyObject* watch_arm(PyObject*, PyObject* args) {
  PyObject *optimizer = nullptr, *grad_enabled = nullptr, *any_autocast = nullptr, *every = nullptr;
  Py_ssize_t group = -1, at = 0;
  double next = 0;
  int on_device = 0;
  if (PyArg_ParseTuple(args, "O(nn)OOdpO", &optimizer, &group, &at, &grad_enabled, &any_autocast, &next,
                       &on_device, &every) == 0)
    return nullptr;
  if (g_watch.grad == nullptr) g_watch.grad = PyUnicode_InternFromString("grad");
  if (g_watch.is_cuda == nullptr) g_watch.is_cuda = PyUnicode_InternFromString("is_cuda");
  if (g_watch.groups == nullptr) g_watch.groups = PyUnicode_InternFromString("param_groups");
  if (g_watch.parameters == nullptr) g_watch.parameters = PyUnicode_InternFromString("params");
  forget_calls();
  keep_in(g_watch.optimizer, optimizer);
  keep_in(g_watch.every, every);
  g_watch.group = group;
  g_watch.at = at;
  ask_later(g_watch.grad_enabled, grad_enabled);
  ask_later(g_watch.any_autocast, any_autocast);
  g_watch.next = next;
  g_watch.on_device = on_device != 0;
  g_watch.has_loss = false;
  g_watch.steps = 0;
  g_watch.armed = true;
  Py_RETURN_NONE;
}

PyObject* watch_drain(PyObject*, PyObject*) {
  g_watch.armed = false;
  const long long kept = g_watch.on_device ? 0 : g_watch.steps < kKept ? g_watch.steps : kKept;
  Ref losses(PyList_New(kept));
  if (!losses) return nullptr;
  for (long long i = 0; i < kept; ++i) {
    PyObject* one = PyFloat_FromDouble(g_watch.losses[(g_watch.steps - kept + i) % kKept]);
    if (one == nullptr) return nullptr;
    PyList_SetItem(losses.get(), i, one);
  }
  Ref calls(PyList_New(0));
  if (!calls) return nullptr;
  for (int i = 0; i < g_watch.calls_count; ++i) {
    const Call& call = g_watch.calls[(g_watch.calls_begin + i) % kCalls];
    const Ref one(PyTuple_Pack(4, call.module, call.args, call.kwargs != nullptr ? call.kwargs : Py_None,
                               call.more != nullptr ? call.more : Py_None));
    if (!one || PyList_Append(calls.get(), one.get()) != 0) return nullptr;
  }
  forget_calls();
  Ref loss(g_watch.has_loss && !g_watch.on_device ? PyFloat_FromDouble(g_watch.loss)
                                                  : Ref::borrow(Py_None).release());
  if (!loss) return nullptr;
  return Py_BuildValue("LNNNi", g_watch.steps, losses.release(), loss.release(), calls.release(),
                       g_watch.has_loss ? 1 : 0);
}

}  // namespace trapline::kernel
