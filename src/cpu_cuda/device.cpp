#include "cpu_cuda/device.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cpu_cuda/context.hpp"
#include "cpu_cuda/memory.hpp"
#include "cpu_cuda/pool.hpp"
#include "cpu_cuda/streams.hpp"

namespace trapline::cpu_cuda {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;
using c10::StreamId;
thread_local DeviceIndex t_device = 0;
thread_local StreamId t_stream[kMaxDevices] = {};
std::atomic<DeviceIndex> g_count{1};

void check_index(DeviceIndex index) {
  if (index < 0 || index >= device_count())
    throw_cuda_error(101, "cudaErrorInvalidDevice",
                     "invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?");
}

DeviceIndex or_current(DeviceIndex index) { return index < 0 ? t_device : index; }

Stream stream_of(DeviceIndex index, StreamId id) {
  return Stream(Stream::UNSAFE, Device(kDevice, index), id);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kDevice;
  c10::DeviceType type() const override { return kDevice; }
  Device exchangeDevice(Device device) const override { return {kDevice, exchange_device(device.index())}; }
  Device getDevice() const override { return {kDevice, t_device}; }
  void setDevice(Device device) const override { exchange_device(device.index()); }
  void uncheckedSetDevice(Device device) const noexcept override { t_device = device.index(); }
  DeviceIndex deviceCount() const noexcept override { return device_count(); }

  Stream getStream(Device device) const override {
    const DeviceIndex index = or_current(device.index());
    return stream_of(index, t_stream[index]);
  }
  Stream getDefaultStream(Device device) const override { return stream_of(or_current(device.index()), 0); }
  Stream getStreamFromGlobalPool(Device device, bool) const override { return getNewStream(device, 0); }
  Stream getNewStream(Device device, int) const override {
    return stream_of(or_current(device.index()), new_stream());
  }
  Stream exchangeStream(Stream stream) const override {
    const DeviceIndex index = stream.device_index();
    return stream_of(index, std::exchange(t_stream[index], stream.id()));
  }
  void* getStreamNativeHandle(const Stream stream) const override { return native_handle(stream.id()); }
  bool queryStream(const Stream& stream) const override { return stream_is_idle(stream.id()); }
  void synchronizeStream(const Stream& stream) const override { wait_for_stream(stream.id()); }
  void synchronizeDevice(DeviceIndex) const override { wait_for_device(); }
  bool isStreamCapturing(const Stream& stream) const override { return captures(stream.id()); }
  void recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const override {
    use_on_stream(data.get(), stream.id());
  }

  void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override {
    auto* recorded = static_cast<Event*>(*event);
    cpu_cuda::record(recorded, stream.id());
    *event = recorded;
  }
  void block(void* event, const Stream& stream) const override {
    wait_on_stream(static_cast<Event*>(event), stream.id());
  }
  bool queryEvent(void* event) const override { return has_come(static_cast<Event*>(event)); }
  void synchronizeEvent(void* event) const override { wait_for(static_cast<Event*>(event)); }
  void destroyEvent(void* event, DeviceIndex) const noexcept override { destroy(static_cast<Event*>(event)); }
  double elapsedTime(void* first, void* second, DeviceIndex) const override {
    return milliseconds_between(static_cast<Event*>(first), static_cast<Event*>(second));
  }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard);

// Draws the CPU's numbers: the default one is the CPU's own, so that a program gets what it gets on the CPU.
struct DeviceGenerator final : c10::GeneratorImpl {
  DeviceGenerator(DeviceIndex device, at::Generator host)
      : c10::GeneratorImpl(Device(kDevice, device), c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        host_(std::move(host)) {}

  const at::Generator& host() const { return host_; }
  void set_current_seed(std::uint64_t seed) override { locked()->set_current_seed(seed); }
  std::uint64_t current_seed() const override { return locked()->current_seed(); }
  std::uint64_t seed() override { return locked()->seed(); }
  void set_offset(std::uint64_t offset) override { locked()->set_offset(offset); }
  std::uint64_t get_offset() const override { return locked()->get_offset(); }
  void set_state(const c10::TensorImpl& state) override { locked()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return locked()->get_state(); }

 private:
  struct Locked {
    std::unique_lock<std::mutex> lock;
    c10::GeneratorImpl* impl;
    c10::GeneratorImpl* operator->() const { return impl; }
  };
  Locked locked() const {
    c10::GeneratorImpl* impl = host_.unsafeGetGeneratorImpl();
    return {std::unique_lock<std::mutex>(impl->mutex_), impl};
  }
  DeviceGenerator* clone_impl() const override {
    return new DeviceGenerator(device().index(), host_.clone());
  }

  const at::Generator host_;
};

struct Hooks final : at::CUDAHooksInterface {
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return device_count(); }
  int getNumGPUs() const override { return device_count(); }
  DeviceIndex current_device() const override { return t_device; }
  DeviceIndex getCurrentDevice() const override { return t_device; }
  void setCurrentDevice(DeviceIndex index) const override { exchange_device(index); }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    return index < 0 ? -1 : exchange_device(index);
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return index < 0 ? -1 : exchange_device(index);
  }
  const at::Generator& getDefaultGenerator(DeviceIndex index) const override {
    return default_generator(or_current(index));
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return at::make_generator<DeviceGenerator>(or_current(index), at::detail::createCPUGenerator());
  }
  Device getDeviceFromPtr(void*) const override { return {kDevice, t_device}; }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  c10::Allocator* getCUDADeviceAllocator() const override { return device_allocator(); }
  std::string showConfig() const override { return "CPU in place of CUDA (trapline)\n"; }
  void deviceSynchronize(DeviceIndex) const override { wait_for_device(); }
};

struct RegisterHooks {
  RegisterHooks() {
    at::CUDAHooksRegistry()->Register(
        "CUDAHooks", [](at::CUDAHooksArgs) { return std::unique_ptr<at::CUDAHooksInterface>(new Hooks); });
  }
} g_register_hooks;

}  // namespace

DeviceIndex device_count() noexcept { return g_count.load(std::memory_order_relaxed); }

void set_device_count(int count) noexcept {
  g_count.store(static_cast<DeviceIndex>(std::clamp(count, 1, kMaxDevices)));
}

DeviceIndex current_device() noexcept { return t_device; }

DeviceIndex exchange_device(DeviceIndex index) {
  if (index < 0) return t_device;
  check_index(index);
  return std::exchange(t_device, index);
}

c10::StreamId current_stream(DeviceIndex index) noexcept { return t_stream[or_current(index)]; }

void set_stream(DeviceIndex index, StreamId stream) noexcept { t_stream[or_current(index)] = stream; }

at::Generator host_generator(const at::Generator& generator) {
  TORCH_CHECK(generator.device().type() == kDevice, "Expected a 'cuda' device type for generator but found '",
              generator.device().type(), "'");
  return static_cast<const DeviceGenerator*>(generator.unsafeGetGeneratorImpl())->host();
}

const at::Generator& default_generator(DeviceIndex device) {
  check_index(device);
  static auto* all = [] {
    auto* made = new std::vector<at::Generator>;
    for (DeviceIndex i = 0; i < device_count(); ++i)
      made->push_back(at::make_generator<DeviceGenerator>(i, at::detail::getDefaultCPUGenerator()));
    return made;
  }();
  return (*all)[static_cast<std::size_t>(device)];
}

}  // namespace trapline::cpu_cuda
