// Operations: enqueued, and run by the CPU's kernels when their turn comes.
#include <ATen/InferSize.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <cstdio>
#include <memory>

#include "asserts.hpp"
#include "backend.hpp"

namespace fakedev {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using torch::jit::Stack;

bool is_ours(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kDevice; }

// The same memory as a tensor of the host. It does not keep the memory: a stream does not, either.
at::Tensor host_view(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (!is_ours(tensor)) return tensor.dim() == 0 || tensor.is_cpu() ? tensor.clone() : tensor;
  void* data = static_cast<char*>(const_cast<void*>(tensor.storage().data())) +
               tensor.storage_offset() * static_cast<std::int64_t>(tensor.itemsize());
  return at::from_blob(data, tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.scalar_type()));
}

at::Tensor meta_of(const at::Tensor& tensor) {
  if (!is_ours(tensor)) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           at::TensorOptions().dtype(tensor.scalar_type()).device(at::kMeta));
}

at::Tensor like_meta(const at::Tensor& meta) {
  return at::empty_strided(meta.sizes(), meta.strides(),
                           at::TensorOptions().dtype(meta.scalar_type()).device(c10::Device(kDevice, 0)));
}

template <class F>
c10::IValue map_tensors(const c10::IValue& value, const F& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (!value.isList()) return value;
  auto list = value.toList().copy();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const c10::IValue element = list.get(i);
    if (element.isTensor()) list.set(i, change(element.toTensor()));
  }
  return list;
}

template <class F>
Stack map_stack(const Stack& stack, const F& change) {
  Stack out;
  for (const c10::IValue& value : stack) out.push_back(map_tensors(value, change));
  return out;
}

void run_late(const c10::OperatorHandle& op, Stack& arguments) {
  if (would_assert(op.schema().name(), arguments)) return fake_cuda_poison();
  try {
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), &arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fakedev: %s failed late: %s\n", op.schema().name().c_str(), error.what());
    fake_cuda_poison();
  }
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// The results of an operation that makes its own, on this device, from shapes alone. False: the shapes depend
// on the data.
bool make_results(const c10::OperatorHandle& op, const Stack& arguments, Stack& results) {
  Stack meta = map_stack(arguments, meta_of);
  try {
    const c10::impl::ExcludeDispatchKeyGuard no_python(c10::python_ks);
    op.redispatchBoxed(DispatchKeySet(DispatchKey::Meta), &meta);
  } catch (const std::exception&) {
    return false;
  }
  results = map_stack(meta, like_meta);
  return true;
}

// Not by the dispatcher, where a guard would see it as the program's.
void copy_now(at::Tensor to, const at::Tensor& from) { at::native::copy_(to, from, false); }

void copy_results(const Stack& from, const Stack& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (from[i].isTensor() && from[i].toTensor().defined()) copy_now(to[i].toTensor(), from[i].toTensor());
  }
}

// From the host, but in the order of the stream: the memory may be that of a freed tensor which work of
// another thread on this stream still has to read.
void write_in_order(const at::Tensor& to, const at::Tensor& from) {
  enqueue([to = host_view(to), from] { copy_now(to, from); });
  synchronize(current_handle());
}

// As an operation of CUDA whose result depends on values: it waits.
void run_now(const c10::OperatorHandle& op, Stack& arguments) {
  synchronize(current_handle());
  Stack host = map_stack(arguments, host_view);
  if (would_assert(op.schema().name(), host)) {
    fake_cuda_poison();
    check_context();
  }
  op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), &host);
  arguments = map_stack(host, [](const at::Tensor& tensor) {
    at::Tensor out = like_meta(tensor);
    write_in_order(out, tensor);
    return out;
  });
}

// out= tensors that the operation has to resize: printing makes them. Nothing else here does.
bool grows(const c10::FunctionSchema& schema, const Stack& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (schema.arguments()[i].is_out() && arguments[i].isTensor() && arguments[i].toTensor().numel() == 0)
      return true;
  }
  return false;
}

void run_into(const c10::OperatorHandle& op, Stack& arguments) {
  std::vector<at::Tensor> out;
  Stack host;
  synchronize(current_handle());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_out = op.schema().arguments()[i].is_out();
    if (is_out) out.push_back(arguments[i].toTensor());
    host.push_back(is_out ? c10::IValue(at::empty({0}, arguments[i].toTensor().scalar_type()))
                          : map_tensors(arguments[i], host_view));
  }
  op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), &host);
  arguments.clear();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].resize_(host[i].toTensor().sizes());
    write_in_order(out[i], host[i].toTensor());
    arguments.push_back(out[i]);
  }
}

void run_operation(const c10::OperatorHandle& op, Stack* stack) {
  check_context();
  const auto& schema = op.schema();
  const std::size_t count = schema.arguments().size();
  Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  torch::jit::drop(*stack, count);
  if (grows(schema, arguments)) {
    run_into(op, arguments);
    stack->insert(stack->end(), arguments.begin(), arguments.end());
    return;
  }
  Stack results;
  bool in_place = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!writes(schema.arguments()[i])) continue;
    in_place = true;
    if (results.size() < schema.returns().size()) results.push_back(arguments[i]);
  }
  if (!in_place && !make_results(op, arguments, results)) {
    run_now(op, arguments);
    stack->insert(stack->end(), arguments.begin(), arguments.end());
    return;
  }
  auto host = std::make_shared<Stack>(map_stack(arguments, host_view));
  auto out = std::make_shared<Stack>(in_place ? Stack() : map_stack(results, host_view));
  enqueue([op, host, out] {
    Stack work = *host;  // a graph runs it again
    run_late(op, work);
    if (fake_cuda_poisoned() == 0) copy_results(work, *out);
  });
  stack->insert(stack->end(), results.begin(), results.end());
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, memory(), DispatchKeySet(DispatchKey::PrivateUse1),
                                   dtype.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, memory(), DispatchKeySet(DispatchKey::PrivateUse1),
                                           dtype.value_or(at::kFloat));
}

// copy_ of any kind arrives here: between host and device, with or without a change of dtype.
at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  const at::Tensor from = host_view(source);  // a clone where it is the host's: it may change at once
  const at::Tensor to = is_ours(target) ? host_view(target) : target;
  enqueue([from, to] { copy_now(to, from); });
  if (!non_blocking && !(is_ours(source) && is_ours(target))) synchronize(current_handle());
  return target;
}

at::Scalar item(const at::Tensor& self) {
  synchronize(current_handle());
  return host_view(self).item();
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  c10::impl::getDeviceGuardImpl(kDevice)->recordDataPtrOnStream(self.storage().data_ptr(), stream);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_operation>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_local_scalar_dense", TORCH_FN(item));
  library.impl("record_stream", TORCH_FN(record_stream));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("resize_", TORCH_FN(at::native::resize_));
}

}  // namespace
}  // namespace fakedev
