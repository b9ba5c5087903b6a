// Operations that are about memory and devices themselves, and those whose composition asks for the device.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/TensorFactories.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <set>
#include <string>

#include "cpu_cuda/context.hpp"
#include "cpu_cuda/device.hpp"
#include "cpu_cuda/memory.hpp"
#include "cpu_cuda/plan.hpp"
#include "cpu_cuda/pool.hpp"
#include "cpu_cuda/streams.hpp"

namespace trapline::cpu_cuda {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

constexpr DispatchKeySet kKeys(DispatchKey::CUDA);

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  check_context();
  TORCH_CHECK(layout.value_or(c10::kStrided) == c10::kStrided, "trapline: --cpu: a tensor of layout ",
              *layout, " cannot be on this device: only dense ones can");
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pin_memory,
                 std::optional<at::MemoryFormat> format) {
  check_options(layout, pin_memory);
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(sizes, device_allocator(), kKeys,
                                   dtype.value_or(c10::get_default_dtype_as_scalartype()), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes, strides, device_allocator(), kKeys,
                                           dtype.value_or(c10::get_default_dtype_as_scalartype()));
}

// As CUDA's: pageable memory is read before the call returns, and written; page-locked memory only if the
// program wants to wait.
void copy_late(const at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (!at::is_expandable_to(source.sizes(), self.sizes())) {  // refused now, in PyTorch's words
    at::Tensor to = host_view(self);
    at::native::copy_(to, host_view(source), false);
    return;
  }
  const bool capturing = is_capturing();
  const bool crosses = self.is_cuda() != source.is_cuda();
  const auto is_locked = [](const at::Tensor& tensor) { return is_pinned(tensor.const_data_ptr()); };
  const bool waits = crosses && (!non_blocking || (!self.is_cuda() && !is_locked(self)));
  if (waits && capturing) wait_for_stream();  // throws
  const auto on_stream = [&](const at::Tensor& tensor) {
    if (tensor.is_cuda()) return capturing ? host_view(tensor) : late_view(tensor);
    const bool read_later = tensor.is_same(self) || capturing || (non_blocking && is_locked(tensor));
    return read_later ? tensor : tensor.clone();
  };
  enqueue([to = on_stream(self), from = on_stream(source)] {
    const at::AutoDispatchBelowADInplaceOrView below;
    at::native::copy_(const_cast<at::Tensor&>(to), from, false);
  });
  if (waits) wait_for_stream();
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  check_context();
  const at::AutoDispatchBelowADInplaceOrView below;
  if (is_deferred()) {
    copy_late(self, source, non_blocking);
    return self;
  }
  at::Tensor to = host_view(self);
  at::native::copy_(to, host_view(source), non_blocking);
  return self;
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& self, bool non_blocking) {
  at::Tensor to = self;
  copy_(to, source, non_blocking);
  return self;
}

at::Scalar item(const at::Tensor& self) {
  wait_for_stream();
  return at::native::_local_scalar_dense_cpu(host_view(self));
}

at::Tensor& set_empty(at::Tensor& self) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, device_allocator(), true);
  return self.set_(std::move(storage), 0, {0}, {});
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef sizes,
                          std::optional<at::MemoryFormat> format) {
  if (is_late()) wait_for_stream();  // memory that grows is moved at once
  return at::native::resize_(self, sizes, format);
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  use_on_stream(self.storage().data(), stream.id());
}

// A tensor of zeros without memory, which autograd makes.
at::Tensor zero_tensor(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout> layout, std::optional<at::Device> device,
                       std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const c10::OptionalDeviceGuard guard(device);
  at::native::ZeroTensorAllocator memory(c10::Device(kDevice, current_device()));
  return at::detail::empty_generic(sizes, &memory, kKeys.add(DispatchKey::ZeroTensor),
                                   dtype.value_or(c10::get_default_dtype_as_scalartype()), std::nullopt);
}

using Targets = at::IntArrayRef;

bool no_cudnn_ctc(const at::Tensor&, const at::Tensor&, Targets, Targets, std::int64_t) { return false; }
bool no_cudnn_ctc_tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                         std::int64_t) {
  return false;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("copy_", TORCH_FN(copy_));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_local_scalar_dense", TORCH_FN(item));
  library.impl("record_stream", TORCH_FN(record_stream));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  library.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  library.impl("_efficientzerotensor", TORCH_FN(zero_tensor));
  library.impl("_use_cudnn_ctc_loss", TORCH_FN(no_cudnn_ctc));
  library.impl("_use_miopen_ctc_loss", TORCH_FN(no_cudnn_ctc));
  library.impl("_use_miopen_ctc_loss.Tensor", TORCH_FN(no_cudnn_ctc_tensor));
  library.impl("_use_cudnn_ctc_loss.Tensor", TORCH_FN(no_cudnn_ctc_tensor));
  // A function of PyTorch's for both, which calls the one that reads the indices.
  library.impl("_embedding_bag_backward", TORCH_FN(at::native::_embedding_bag_backward_symint));
  library.impl("resize_", TORCH_FN(resize_));
  library.impl("set_", TORCH_FN(set_empty));
  library.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  library.impl("set_.source_Storage", TORCH_FN(at::native::set_));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(at::native::set_storage_cpu_));
}

namespace {

// All others, by what the dispatcher knows of them when this library is loaded.
struct RegisterOperations {
  RegisterOperations() {
    static torch::Library library(torch::Library::IMPL, "aten", DispatchKey::CUDA, __FILE__, __LINE__);
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      if (name.name.rfind("aten::", 0) != 0) continue;
      const auto op = dispatcher.findSchema(name);
      if (!op || op->hasKernelForDispatchKey(DispatchKey::CUDA)) continue;
      const Way way = way_of(*op);
      if (way == Way::kHost) register_host(library, *op);
      if (way == Way::kRefuse) register_refusal(library, *op);
    }
  }
} g_register_operations;

}  // namespace
}  // namespace trapline::cpu_cuda
