#include "cpu_cuda/memory.hpp"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/TensorImpl.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>

#include "cpu_cuda/device.hpp"
#include "cpu_cuda/pool.hpp"
#include "cpu_cuda/streams.hpp"

namespace trapline::cpu_cuda {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using HostStorage = c10::intrusive_ptr<c10::StorageImpl>;

struct Counters {
  std::atomic<std::int64_t> allocated{0}, peak{0}, allocations{0}, freed{0}, peak_count{0};
};
Counters g_use[kMaxDevices];

void raise_to(std::atomic<std::int64_t>& peak, std::int64_t value) {
  std::int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// What a device storage's DataPtr owns.
struct Block {
  Block(HostStorage memory, c10::DeviceIndex index)
      : host(std::move(memory)), device(index), bytes(static_cast<std::int64_t>(host->nbytes())) {
    Counters& use = g_use[device];
    raise_to(use.peak, use.allocated.fetch_add(bytes, std::memory_order_relaxed) + bytes);
    const std::int64_t made = use.allocations.fetch_add(1, std::memory_order_relaxed) + 1;
    raise_to(use.peak_count, made - use.freed.load(std::memory_order_relaxed));
  }
  ~Block() {
    g_use[device].allocated.fetch_sub(bytes, std::memory_order_relaxed);
    g_use[device].freed.fetch_add(1, std::memory_order_relaxed);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  const HostStorage host;
  const c10::DeviceIndex device;
  const std::int64_t bytes;
};

void drop_block(void* context) { delete static_cast<Block*>(context); }

c10::DataPtr device_face(HostStorage host, c10::DeviceIndex device) {
  void* data = host->mutable_data();
  return {data, new Block(std::move(host), device), &drop_block, c10::Device(kDevice, device)};
}

HostStorage new_host_storage(std::size_t bytes) {
  c10::Allocator* memory = is_late() ? pool() : c10::GetCPUAllocator();
  try {
    return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, memory, true);
  } catch (const c10::Error&) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", bytes >> 20,
                     " MiB. GPU ", static_cast<int>(current_device()), " has ",
                     memory_use(current_device()).allocated >> 20, " MiB allocated by PyTorch.");
  }
}

// Late work knows addresses only, so what it uses must be of the pool. Written in the order of the stream:
// the block may be that of a freed tensor which work of another thread on this stream still has to read.
HostStorage into_pool(const HostStorage& from) {
  HostStorage out = new_host_storage(from->nbytes());
  if (from->nbytes() == 0) return out;
  enqueue([to = out->mutable_data(), from] { std::memcpy(to, from->data(), from->nbytes()); });
  wait_for_stream();
  return out;
}

c10::CachingAllocator::Stat stat(std::int64_t now, std::int64_t peak, std::int64_t all, std::int64_t freed) {
  c10::CachingAllocator::Stat out;
  out.current = now;
  out.peak = peak;
  out.allocated = all;
  out.freed = freed;
  return out;
}

struct DeviceMemory final : c10::DeviceAllocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    return device_face(new_host_storage(bytes), current_device());
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    use_on_stream(data.get(), stream.id());
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const MemoryUse use = memory_use(device);
    c10::CachingDeviceAllocator::DeviceStats out;
    const std::size_t all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto bytes = stat(use.allocated, use.peak, 0, 0);
    for (auto* kind : {&out.allocated_bytes, &out.reserved_bytes, &out.active_bytes, &out.requested_bytes})
      (*kind)[all] = bytes;
    out.allocation[all] = stat(use.allocations - use.freed, use.peak_count, use.allocations, use.freed);
    return out;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override { reset_peak(device); }
};

DeviceMemory g_device_memory;
REGISTER_ALLOCATOR(c10::DeviceType::CUDA, &g_device_memory);

struct PinnedRanges {
  std::mutex mutex;
  std::map<const char*, std::size_t, std::greater<>> by_start;  // first at or below an address
};

PinnedRanges& pinned() {
  static auto* all = new PinnedRanges;  // tensors may outlive static objects
  return *all;
}

struct PinnedBlock {
  c10::DataPtr memory;
};

void drop_pinned(void* context) {
  auto* block = static_cast<PinnedBlock*>(context);
  {
    const std::lock_guard<std::mutex> lock(pinned().mutex);
    pinned().by_start.erase(static_cast<const char*>(block->memory.get()));
  }
  delete block;
}

struct PinnedMemory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* block = new PinnedBlock{c10::GetCPUAllocator()->allocate(bytes)};
    void* data = block->memory.get();
    if (data != nullptr) {
      const std::lock_guard<std::mutex> lock(pinned().mutex);
      pinned().by_start[static_cast<const char*>(data)] = bytes;
    }
    return {data, block, &drop_pinned, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
};

PinnedMemory g_pinned_memory;

// A tensor of the other device with the same form. Conjugation and negation are bits of the form.
// Faces are seen by the CPU's kernels only: they carry none of autograd's keys, which saves some time.
template <class... Kind>
at::Tensor like(const at::Tensor& tensor, c10::Storage storage, DispatchKey key, Kind... kind) {
  DispatchKeySet keys(key);
  const c10::TensorImpl* from = tensor.unsafeGetTensorImpl();
  if (from->is_conj()) keys = keys.add(DispatchKey::Conjugate);
  if (from->is_neg()) keys = keys.add(DispatchKey::Negative);
  at::Tensor out =
      at::detail::make_tensor_base<c10::TensorImpl>(kind..., std::move(storage), keys, from->dtype());
  c10::TensorImpl* impl = out.unsafeGetTensorImpl();
  if (from->dim() != 1 || from->sizes()[0] != 0 || from->storage_offset() != 0 || from->strides()[0] != 1)
    impl->set_sizes_and_strides(from->sizes(), from->strides(), from->storage_offset());
  if (from->is_wrapped_number()) impl->set_wrapped_number(true);
  return out;
}

bool same_form(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset();
}

}  // namespace

c10::Allocator* device_allocator() { return &g_device_memory; }

c10::Allocator* pinned_allocator() { return &g_pinned_memory; }

bool is_pinned(const void* address) {
  const auto* at = static_cast<const char*>(address);
  const std::lock_guard<std::mutex> lock(pinned().mutex);
  const auto found = pinned().by_start.lower_bound(at);
  return found != pinned().by_start.end() && at < found->first + found->second;
}

HostStorage host_storage(const c10::Storage& storage) {
  c10::StorageImpl* device = storage.unsafeGetStorageImpl();
  const c10::DataPtr& data = device->_mutable_data_ptr_no_checks();
  if (data.get_deleter() == &drop_block) {
    const auto* block = static_cast<const Block*>(data.get_context());
    if (block->host->nbytes() == device->nbytes()) return block->host;
  }
  // A storage that somebody else made on memory of the device, or cut: it is kept by its face.
  auto* keep = new c10::Storage(storage);
  c10::DataPtr face(
      data.get(), keep, [](void* context) { delete static_cast<c10::Storage*>(context); },
      c10::Device(c10::kCPU));
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), device->nbytes(),
                                               std::move(face), nullptr, false);
}

at::Tensor host_view(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda() || !tensor.has_storage()) return tensor;
  return like(tensor, c10::Storage(host_storage(tensor.storage())), DispatchKey::CPU, c10::TensorImpl::VIEW);
}

at::Tensor host_tensor(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda() || !tensor.has_storage()) return tensor;
  return like(tensor, c10::Storage(host_storage(tensor.storage())), DispatchKey::CPU);
}

at::Tensor late_view(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda() || !tensor.has_storage()) return tensor;
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  c10::DataPtr memory(const_cast<void*>(storage->data()), c10::Device(c10::kCPU));
  c10::Storage same(c10::Storage::use_byte_size_t(), storage->nbytes(), std::move(memory), nullptr, false);
  return like(tensor, std::move(same), DispatchKey::CPU);
}

at::Tensor adopt_on(const c10::Storage& storage, const at::Tensor& host) {
  return like(host, storage, DispatchKey::CUDA);
}

at::Tensor adopt(const at::Tensor& host, c10::DeviceIndex device) {
  HostStorage memory = HostStorage::reclaim_copy(host.storage().unsafeGetStorageImpl());
  if (is_late() && !is_capturing()) memory = into_pool(memory);  // a graph keeps what it uses
  const std::size_t bytes = memory->nbytes();
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, device_face(std::move(memory), device),
                       &g_device_memory, true);
  return adopt_on(storage, host);
}

void follow(const at::Tensor& tensor, const at::Tensor& host) {
  c10::StorageImpl* device = tensor.storage().unsafeGetStorageImpl();
  HostStorage memory = HostStorage::reclaim_copy(host.storage().unsafeGetStorageImpl());
  const bool moved = memory->data() != device->data() || memory->nbytes() != device->nbytes();
  if (moved) {
    const std::size_t bytes = memory->nbytes();
    device->set_data_ptr_noswap(device_face(std::move(memory), tensor.device().index()));
    device->set_nbytes(bytes);
  }
  if (!same_form(tensor, host))
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
}

MemoryUse memory_use(c10::DeviceIndex device) {
  const Counters& use = g_use[device];
  return {use.allocated.load(), use.peak.load(), use.allocations.load(), use.freed.load(),
          use.peak_count.load()};
}

void reset_peak(c10::DeviceIndex device) {
  Counters& use = g_use[device];
  use.peak.store(use.allocated.load());
  use.peak_count.store(use.allocations.load() - use.freed.load());
}

}  // namespace trapline::cpu_cuda
