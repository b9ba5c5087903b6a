// Memory of the device: host memory with two faces. Each device storage keeps a storage of the CPU on the
// same bytes, so that a CPU tensor on them is made without asking an allocator.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>

#include <cstdint>

namespace trapline::cpu_cuda {

constexpr c10::DeviceType kDevice = c10::DeviceType::CUDA;

// Hands out memory of the thread's current device.
c10::Allocator* device_allocator();

// Page-locked memory of CUDA: plain host memory that is known to be "pinned".
c10::Allocator* pinned_allocator();
bool is_pinned(const void* address);

// The same bytes, sizes, strides and dtype as a tensor of the CPU; what is not on the device as it is.
at::Tensor host_view(const at::Tensor& tensor);

// The same with the keys of autograd, for what may see it later or outside of a kernel.
at::Tensor host_tensor(const at::Tensor& tensor);

// The same, without keeping the memory: a stream does not keep it, either.
at::Tensor late_view(const at::Tensor& tensor);

// The CPU's face of a device storage.
c10::intrusive_ptr<c10::StorageImpl> host_storage(const c10::Storage& storage);

// A device tensor on the memory of `host`, which may be shared with the program by `host` itself only.
at::Tensor adopt(const at::Tensor& host, c10::DeviceIndex device);

// A device tensor of the form of `host` on a storage that the device has already.
at::Tensor adopt_on(const c10::Storage& storage, const at::Tensor& host);

// Gives `tensor` what an operation did to its face `host`: memory that grew, sizes, strides.
void follow(const at::Tensor& tensor, const at::Tensor& host);

struct MemoryUse {
  std::int64_t allocated = 0, peak = 0, allocations = 0, freed = 0, peak_count = 0;
};
MemoryUse memory_use(c10::DeviceIndex device);
void reset_peak(c10::DeviceIndex device);

}  // namespace trapline::cpu_cuda
