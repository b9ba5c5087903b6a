#include "guard/python/compiled.hpp"

#include <ATen/ops/empty_strided.h>
#include <torch/csrc/api/include/torch/version.h>
#include <torch/library.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "guard/compiled_site.hpp"
#include "guard/device_check.hpp"
#include "guard/device_stream.hpp"
#include "guard/fork_mutex.hpp"
#include "guard/hooks.hpp"
#include "guard/python/convert.hpp"
#include "guard/python/torch_python.hpp"
#include "guard/state.hpp"

namespace trapline::guard {
namespace {

using torch::jit::Stack;

constexpr int kCheckArguments = 4;
// Elements from which on other threads may run Python while the check does.
constexpr std::int64_t kLong = 1 << 15;

PyObject *g_read = nullptr, *g_ask = nullptr;  // set once, under the GIL
PyObject* g_by_text = nullptr;                 // dict: text of a site -> address of its CompiledSite

struct Sites {
  ForkMutex mutex;
  std::unordered_map<std::string, const CompiledSite*> by_text;
};

Sites& sites() {
  static auto* all = new Sites;  // never destroyed: threads may outlive static destruction
  return *all;
}

const trapline_contract* row_of(const char* id) {
  std::size_t count = 0;
  const trapline_contract* table = trapline_contracts(&count);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::strcmp(table[i].id, id) == 0) return &table[i];
  }
  return nullptr;
}

// The functions below need the GIL; false with a Python error set where the tuple is not as values.py makes
// it.
bool read_entry(PyObject* tuple, SiteEntry& out) {
  long long start = 0, length = 0;
  PyObject* items = nullptr;
  if (!PyArg_ParseTuple(tuple, "iiiLLO!", &out.kind, &out.dtype, &out.other, &start, &length, &PyTuple_Type,
                        &items))
    return false;
  out.start = start;
  out.length = length;
  out.items.resize(static_cast<std::size_t>(PyTuple_Size(items)));
  for (std::size_t i = 0; i < out.items.size(); ++i) {
    if (!read_entry(PyTuple_GetItem(items, static_cast<Py_ssize_t>(i)), out.items[i])) return false;
  }
  return true;
}

bool read_numbers(PyObject* tuple, CompiledSite& site) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
    PyObject* number = PyTuple_GetItem(tuple, i);
    if (number == Py_None) site.holes.push_back(static_cast<std::int32_t>(i));
    site.numbers.push_back(number == Py_None ? 0 : PyLong_AsLongLong(number));
  }
  return PyErr_Occurred() == nullptr;
}

bool read_site(PyObject* said, CompiledSite& site) {
  const char *contract = nullptr, *op = nullptr, *overload = nullptr;
  PyObject *numbers = nullptr, *parts = nullptr;
  if (!PyArg_ParseTuple(said, "sssiO!O!", &contract, &op, &overload, &site.list_position, &PyTuple_Type,
                        &numbers, &PyTuple_Type, &parts))
    return false;
  if (PyTuple_Size(parts) != kSiteParts || !read_numbers(numbers, site)) return false;
  for (int at = 0; at < kSiteParts; ++at) {
    PyObject* part = PyTuple_GetItem(parts, at);
    site.has[at] = part != Py_None;
    if (site.has[at] && !read_entry(part, site.part[at])) return false;
  }
  const trapline_contract* row = row_of(contract);
  if (row == nullptr || !site.has[0]) return false;
  site.plan.op = op;
  site.plan.overload = overload;
  site.plan.rows.push_back({row, 0, -1, -1, -1});
  site.plan.needed = {0};
  site.plan.remember = true;  // the history is that of the dispatcher's calls
  site.plan.site = &site;
  return true;
}

// nullptr without a Python error where the text says nothing that can be judged.
const CompiledSite* new_site(PyObject* text) {
  PyRef said(PyObject_CallFunctionObjArgs(g_read, text, nullptr));
  auto site = std::make_unique<CompiledSite>(
      CompiledSite{Plan{c10::Dispatcher::singleton().findSchemaOrThrow("trapline::check", "")}});
  const bool is_read = said && PyTuple_Check(said.get()) && read_site(said.get(), *site);
  if (!is_read) {
    PyErr_Clear();
    stepped_aside("a compiled operation", "its site cannot be read");
  }
  return is_read ? site.release() : nullptr;
}

const CompiledSite* site_of(PyObject* text) {
  PyObject* known = PyDict_GetItem(g_by_text, text);
  if (known != nullptr) return static_cast<const CompiledSite*>(PyLong_AsVoidPtr(known));
  const CompiledSite* site = new_site(text);
  PyRef address(PyLong_FromVoidPtr(const_cast<CompiledSite*>(site)));
  if (!address || PyDict_SetItem(g_by_text, text, address.get()) != 0) PyErr_Clear();
  return site;
}

// The same for the dispatcher, whose callers do not hold the GIL: it is taken for the first call of a site.
const CompiledSite* site_of(const std::string& text) {
  Sites& all = sites();
  {
    const std::lock_guard<ForkMutex> lock(all.mutex);
    const auto found = all.by_text.find(text);
    if (found != all.by_text.end()) return found->second;
  }
  const CompiledSite* site = nullptr;
  {
    const GilAcquire gil;
    PyRef key(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
    if (key) site = site_of(key.get());
    PyErr_Clear();
  }
  const std::lock_guard<ForkMutex> lock(all.mutex);
  return all.by_text.emplace(text, site).first->second;
}

// The healed copy with the strides by which the compiled code reads the argument.
at::Tensor like(const at::Tensor& argument, const at::Tensor& healed) {
  if (healed.is_same(argument) || healed.strides() == argument.strides()) return healed;
  at::Tensor out = at::empty_strided(argument.sizes(), argument.strides(), argument.options());
  out.copy_(healed);
  return out;
}

bool on_guarded_device(const at::Tensor& argument) {
  return has_device() && reaches_device(argument.key_set() & kBelow);
}

// `values`: the check's arguments, the last on the stack. What is raised here is what an earlier call has
// done, or what cannot be healed.
at::Tensor check_there(ThreadState& state, const CompiledSite& site, Stack& stack) {
  const at::Tensor argument = torch::jit::peek(stack, 0, kCheckArguments).toTensor();
  check_on_device(state, site.plan, stack);
  return like(argument, torch::jit::peek(stack, 0, kCheckArguments).toTensor());
}

// Called by the compiled code -------------------------------------------------------------------------------

// What is bad, and what is not judged here.
PyObject* ask(PyObject* const* args, Py_ssize_t count) {
  const BusyScope busy(t_state);
  PyRef all(PyTuple_New(count));
  for (Py_ssize_t i = 0; all && i < count; ++i)
    PyTuple_SetItem(all.get(), i, PyRef::borrowed(args[i]).release());
  return all ? PyObject_CallObject(g_ask, all.get()) : nullptr;
}

// False: these are not what compiled code passes.
bool unpack(PyObject* others, PyObject* numbers, SiteCall& call) {
  if (!PyList_Check(others) || !PyList_Check(numbers)) return false;
  for (Py_ssize_t i = 0; i < PyList_Size(others); ++i) {
    PyObject* other = PyList_GetItem(others, i);
    if (!is_tensor(other)) return false;
    call.others.push_back(&tensor_of(other));
  }
  for (Py_ssize_t i = 0; i < PyList_Size(numbers); ++i) {
    PyObject* number = PyList_GetItem(numbers, i);
    if (!PyLong_CheckExact(number)) return false;
    call.numbers.push_back(PyLong_AsLongLong(number));
  }
  return PyErr_Occurred() == nullptr;
}

int judge(const CompiledSite& site, const SiteCall& call) {
  trapline_scan scan;
  if (call.argument.numel() < kLong) return judge_site(site, call, scan);
  const GilRelease no_gil;
  return judge_site(site, call, scan);
}

PyObject* checked_there(const CompiledSite& site, const SiteCall& call, PyObject* argument, PyObject* text) {
  Stack stack;
  c10::List<at::Tensor> others;
  for (const at::Tensor* other : call.others) others.push_back(*other);
  c10::List<std::int64_t> numbers;
  for (const std::int64_t number : call.numbers) numbers.push_back(number);
  torch::jit::push(stack, call.argument, std::move(others), std::move(numbers),
                   std::string(PyUnicode_AsUTF8(text)));
  at::Tensor result;
  {
    const GilRelease no_gil;
    result = check_there(t_state, site, stack);
  }
  return result.is_same(call.argument) ? PyRef::borrowed(argument).release() : THPVariable_Wrap(result);
}

PyObject* checked_call(PyObject* const* args, Py_ssize_t count) {
  if (count != kCheckArguments || !is_tensor(args[0]) || !PyUnicode_Check(args[3])) return ask(args, count);
  const ThreadState& state = t_state;
  const SiteCall none(tensor_of(args[0]));
  const bool on_host = none.argument.is_cpu();
  if (!enabled() || !outermost(state) || (!on_host && !on_guarded_device(none.argument)))
    return PyRef::borrowed(args[0]).release();
  SiteCall call(none.argument);
  const CompiledSite* site = site_of(args[3]);
  if (site == nullptr || !unpack(args[1], args[2], call)) {
    PyErr_Clear();
    return ask(args, count);
  }
  if (!on_host) return checked_there(*site, call, args[0], args[3]);
  return judge(*site, call) == TRAPLINE_VIOLATED ? ask(args, count) : PyRef::borrowed(args[0]).release();
}

PyObject* checked(PyObject*, PyObject* const* args, Py_ssize_t count) {
  try {
    return checked_call(args, count);
  } catch (const std::exception&) {
    torch::translate_exception_to_python(std::current_exception());
    return nullptr;
  }
}

// Called by the dispatcher ----------------------------------------------------------------------------------

at::Tensor ask(ThreadState& state, c10::ArrayRef<c10::IValue> values) {
  const BusyScope busy(state);
  python_error error;
  {
    const GilAcquire gil;
    PyRef argument[kCheckArguments];
    for (int i = 0; i < kCheckArguments; ++i) argument[i] = value_to_python(values[i]);
    PyRef answer(PyObject_CallFunctionObjArgs(g_ask, argument[0].get(), argument[1].get(), argument[2].get(),
                                              argument[3].get(), nullptr));
    if (answer && is_tensor(answer.get())) return tensor_of(answer.get());
    if (answer) return values[0].toTensor();
    PyErr_Fetch(&error.type, &error.value, &error.traceback);
    error.message = text_of(error);
  }
  throw error;
}

class Check final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
    at::Tensor result = check(*stack);
    torch::jit::drop(*stack, kCheckArguments);
    torch::jit::push(*stack, std::move(result));
  }

 private:
  static at::Tensor check(Stack& stack) {
    const c10::ArrayRef<c10::IValue> values = torch::jit::last(stack, kCheckArguments);
    const at::Tensor argument = values[0].toTensor();
    ThreadState& state = t_state;
    const bool on_host = argument.is_cpu();
    if (!enabled() || !outermost(state) || (!on_host && !on_guarded_device(argument))) return argument;
    const CompiledSite* site = site_of(values[3].toStringRef());
    if (site == nullptr) return ask(state, values);
    if (!on_host) return check_there(state, *site, stack);
    trapline_scan scan;
    return judge_site(*site, SiteCall(values), scan) == TRAPLINE_VIOLATED ? ask(state, values) : argument;
  }
};

#ifndef METH_FASTCALL  // in the limited API since 3.10, and in every Python since 3.7
#define METH_FASTCALL 0x0080
#endif

PyMethodDef kChecked = {"checked", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(checked)),
                        METH_FASTCALL,
                        "checked(argument, others, numbers, site) -> argument, or its healed copy"};

}  // namespace

PyObject* compiled_check(PyObject*, PyObject* args) {
  PyObject *read = nullptr, *ask_python = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &read, &ask_python)) return nullptr;
  try {
    if (g_by_text == nullptr) {
      g_by_text = PyDict_New();
      auto* library = new torch::Library(torch::Library::IMPL, "trapline",
                                         c10::DispatchKey::CompositeExplicitAutograd, __FILE__, __LINE__);
      library->impl("check", torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Check>()));
    }
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_RuntimeError, "trapline: guard: torch %s takes no kernel for compiled code: %s",
                 TORCH_VERSION, error.what());
    return nullptr;
  }
  Py_INCREF(read);
  Py_INCREF(ask_python);
  g_read = read;
  g_ask = ask_python;
  return PyCFunction_NewEx(&kChecked, nullptr, nullptr);
}

}  // namespace trapline::guard
