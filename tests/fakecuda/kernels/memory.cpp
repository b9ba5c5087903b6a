// The CPU's faces of tensors whose memory is that of PyTorch's own caching allocator.
#include "cpu_cuda/memory.hpp"

#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>

#include "cpu_cuda/streams.hpp"

namespace trapline::cpu_cuda {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using HostStorage = c10::intrusive_ptr<c10::StorageImpl>;

template <class... Kind>
at::Tensor like(const at::Tensor& tensor, c10::Storage storage, DispatchKey key, Kind... kind) {
  DispatchKeySet keys(key);
  const c10::TensorImpl* from = tensor.unsafeGetTensorImpl();
  if (from->is_conj()) keys = keys.add(DispatchKey::Conjugate);
  if (from->is_neg()) keys = keys.add(DispatchKey::Negative);
  at::Tensor out =
      at::detail::make_tensor_base<c10::TensorImpl>(kind..., std::move(storage), keys, from->dtype());
  c10::TensorImpl* impl = out.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(from->sizes(), from->strides(), from->storage_offset());
  if (from->is_wrapped_number()) impl->set_wrapped_number(true);
  return out;
}

bool has_memory(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cuda() && tensor.has_storage();
}

// The host's bytes in memory of the device, written in the order of the stream. A capture runs nothing: what
// is in it comes with the replays.
c10::DataPtr to_device(const HostStorage& host) {
  c10::DataPtr memory = c10::cuda::CUDACachingAllocator::get()->allocate(host->nbytes());
  if (host->nbytes() == 0 || is_capturing()) return memory;
  enqueue([to = memory.get(), host] { std::memcpy(to, host->data(), host->nbytes()); });
  wait_for_stream();
  return memory;
}

}  // namespace

HostStorage host_storage(const c10::Storage& storage) {
  auto* keep = new c10::Storage(storage);
  c10::DataPtr face(
      const_cast<void*>(storage.data()), keep,
      [](void* context) { delete static_cast<c10::Storage*>(context); }, c10::Device(c10::kCPU));
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                                               std::move(face), c10::GetCPUAllocator(), true);
}

at::Tensor host_view(const at::Tensor& tensor) {
  if (!has_memory(tensor)) return tensor;
  return like(tensor, c10::Storage(host_storage(tensor.storage())), DispatchKey::CPU, c10::TensorImpl::VIEW);
}

at::Tensor host_tensor(const at::Tensor& tensor) {
  if (!has_memory(tensor)) return tensor;
  return like(tensor, c10::Storage(host_storage(tensor.storage())), DispatchKey::CPU);
}

at::Tensor late_view(const at::Tensor& tensor) {
  if (!has_memory(tensor)) return tensor;
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  c10::DataPtr memory(const_cast<void*>(storage->data()), c10::Device(c10::kCPU));
  c10::Storage same(c10::Storage::use_byte_size_t(), storage->nbytes(), std::move(memory), nullptr, false);
  return like(tensor, std::move(same), DispatchKey::CPU);
}

at::Tensor adopt_on(const c10::Storage& storage, const at::Tensor& host) {
  return like(host, storage, DispatchKey::CUDA);
}

at::Tensor adopt(const at::Tensor& host, c10::DeviceIndex device) {
  const c10::cuda::CUDAGuard guard(device);
  const HostStorage from = HostStorage::reclaim_copy(host.storage().unsafeGetStorageImpl());
  c10::Storage storage(c10::Storage::use_byte_size_t(), from->nbytes(), to_device(from),
                       c10::cuda::CUDACachingAllocator::get(), true);
  return adopt_on(storage, host);
}

void follow(const at::Tensor& tensor, const at::Tensor& host) {
  c10::StorageImpl* device = tensor.storage().unsafeGetStorageImpl();
  const HostStorage memory = HostStorage::reclaim_copy(host.storage().unsafeGetStorageImpl());
  if (memory->data() != device->data() || memory->nbytes() != device->nbytes()) {
    const c10::cuda::CUDAGuard guard(tensor.device());
    device->set_data_ptr_noswap(to_device(memory));
    device->set_nbytes(memory->nbytes());
  }
  const bool same = tensor.sizes() == host.sizes() && tensor.strides() == host.strides() &&
                    tensor.storage_offset() == host.storage_offset();
  if (!same)
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
}

}  // namespace trapline::cpu_cuda
