#include "guard/python/fault.hpp"

#include <c10/util/Type.h>

#include <string>

namespace trapline::guard {
namespace {

// Of one argument's tensors, in their order.
struct KeptOf {
  const KeptContents* all;
  std::size_t begin;
  at::Tensor operator[](std::size_t i) const {
    return all != nullptr && begin + i < all->size() ? (*all)[begin + i].alias() : at::Tensor();
  }
};

// One that was written to since still tells its shape and its owner. An alias that was written to tells
// nothing.
at::Tensor found_again(const TensorRef& reference, const at::Tensor& kept) {
  const at::Tensor found = reference.lock();
  if (found.defined()) return found;
  return reference.had(kept) ? kept : at::Tensor();
}

PyRef maybe_to_python(const at::Tensor& tensor) {
  return tensor.defined() ? value_to_python(tensor) : none();
}

PyRef argument_to_python(const ArgumentRef& reference, const KeptOf& kept) {
  if (!reference.holds_tensors) return value_to_python(reference.value);
  if (!reference.is_list) return maybe_to_python(found_again(reference.tensors[0], kept[0]));
  PyRef list(PyList_New(0));
  for (std::size_t i = 0; i < reference.tensors.size(); ++i)
    append(list, maybe_to_python(found_again(reference.tensors[i], kept[i])));
  return list;
}

PyRef graph_to_python(const NotedGraph& graph) {
  PyRef list(PyList_New(0));
  for (const NotedNode& node : graph) {
    PyRef next(PyList_New(0));
    for (const int place : node.next) append(next, integer(place));
    PyRef one(PyList_New(0));
    append(one, text(c10::demangle(node.type->name())));
    append(one, std::move(next));
    append(one, maybe_to_python(node.lock_variable()));
    append(list, std::move(one));
  }
  return list;
}

// What was checked: other content is not.
at::Tensor checked_content(const LateFault& fault) {
  const LaunchRecord& record = fault.record;
  at::Tensor tensor = record.tensor.lock_unchanged();
  if (tensor.defined()) return tensor;
  std::size_t at = 0;
  for (const ArgumentRef& reference : record.call->arguments) {
    for (const TensorRef& one : reference.tensors) {
      const at::Tensor kept = KeptOf{fault.contents.get(), at}[0];
      ++at;
      if (one.same_object(record.tensor) && record.tensor.had(kept)) return kept;
    }
  }
  return {};
}

}  // namespace

PyRef thread_label(const char* name, long id) { return PyRef(PyUnicode_FromFormat("%s/%ld", name, id)); }

PyRef describe_fault(const LateFault& fault) {
  const LaunchRecord& record = fault.record;
  const CallFacts& call = *record.call;
  PyRef dict(PyDict_New());
  put(dict, "contract", text(record.row->row->id));
  put(dict, "op", text(call.plan->op));
  put(dict, "overload", text(call.plan->overload));
  put(dict, "scan", scan_to_python(fault.scan));
  put(dict, "tensor", maybe_to_python(checked_content(fault)));
  PyRef args(PyDict_New()), graphs(PyDict_New()), shapes(PyDict_New());
  const auto& names = call.plan->handle.schema().arguments();
  std::size_t at = 0;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const ArgumentRef& argument = call.arguments[i];
    const char* name = names[i].name().c_str();
    put(args, name, argument_to_python(argument, {fault.contents.get(), at}));
    at += argument.tensors.size();
    if (argument.graph != nullptr) put(graphs, name, graph_to_python(*argument.graph));
    if (argument.holds_tensors && !argument.is_list)
      put(shapes, name, sizes_to_python(argument.shape.data(), argument.shape.size()));
  }
  put(dict, "args", std::move(args));
  put(dict, "graphs", std::move(graphs));
  put(dict, "shapes", std::move(shapes));
  put(dict, "frames", frames_to_python(call.frames.data(), call.frames.size()));
  put(dict, "thread", thread_label(call.thread.name, static_cast<long>(call.thread.id)));
  put(dict, "late", PyRef(PyBool_FromLong(1)));
  put(dict, "again", PyRef(PyBool_FromLong(fault.again ? 1 : 0)));
  put(dict, "replayed", PyRef(PyBool_FromLong(fault.replayed ? 1 : 0)));
  put(dict, "backward", PyRef(PyBool_FromLong(call.backward)));
  put(dict, "contained", PyRef(PyBool_FromLong(record.contained)));
  // The operation has not run, and would with the bad value: there is no healed copy to go on with.
  put(dict, "waited", PyRef(PyBool_FromLong(record.waited)));
  if (call.batch != 0) put(dict, "batch", integer(call.batch));
  put(dict, "order", integer(static_cast<std::int64_t>(record.order)));
  put(dict, "unsure", PyRef(PyBool_FromLong(record.tensor.counts_writes() ? 0 : 1)));
  put(dict, "device", text(record.device.str()));
  put(dict, "shape", sizes_to_python(record.shape.data(), record.shape.size()));
  put(dict, "dtype", text(dtype_name(record.dtype)));
  return dict;
}

}  // namespace trapline::guard
