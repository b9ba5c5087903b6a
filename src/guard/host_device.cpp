#include "guard/host_device.hpp"

#include <ATen/core/List.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <utility>

namespace trapline::guard {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

at::Tensor face(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda() || !tensor.has_storage()) return tensor;
  const c10::Storage& storage = tensor.storage();
  c10::DataPtr memory(const_cast<void*>(storage.data()), c10::Device(c10::kCPU));
  c10::Storage same(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(memory), nullptr, false);
  at::Tensor out = at::detail::make_tensor<c10::TensorImpl>(std::move(same), DispatchKeySet(DispatchKey::CPU),
                                                            tensor.dtype());
  out.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  out._set_conj(tensor.is_conj());
  out._set_neg(tensor.is_neg());
  return out;
}

c10::IValue list_of_faces(const c10::IValue& value) {
  if (value.isTensorList()) {
    c10::List<at::Tensor> out;
    for (const at::Tensor& tensor : value.toTensorVector()) out.push_back(face(tensor));
    return out;
  }
  if (!value.isList()) return value;
  c10::List<c10::IValue> out = value.toList().copy();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const c10::IValue element = out.get(i);
    if (element.isTensor()) out.set(i, face(element.toTensor()));
  }
  return out;
}

// Younger than the oldest torch that this is compiled for; those have no such device.
template <class Guard>
auto captures(const Guard* guard, const c10::Stream& stream, int)
    -> decltype(guard->isStreamCapturing(stream)) {
  return guard->isStreamCapturing(stream);
}

template <class Guard>
bool captures(const Guard*, const c10::Stream&, long) {
  return false;
}

}  // namespace

bool is_host_device_ready() {
  if (g_host_key == DispatchKey::Undefined) return false;
  const auto* guard = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
  return !captures(guard, guard->getStream(guard->getDevice()), 0);
}

torch::jit::Stack on_cpu(c10::ArrayRef<c10::IValue> arguments) {
  torch::jit::Stack out;
  out.reserve(arguments.size());
  for (const c10::IValue& value : arguments) {
    out.push_back(value.isTensor() ? c10::IValue(face(value.toTensor())) : list_of_faces(value));
  }
  return out;
}

}  // namespace trapline::guard
