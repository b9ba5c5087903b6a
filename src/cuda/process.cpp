#include "cuda/process.hpp"

#include <pthread.h>

#include <cstring>
#include <optional>

#include "core/tensor_view.hpp"
#include "cuda/ptx.hpp"
#include "cuda/self_test.hpp"

namespace trapline::cuda {
namespace {

std::atomic<bool> forked{false};

struct Process {
  std::mutex mutex;  // held while a device is made ready
  std::optional<bool> loaded;
  Driver driver;
  std::string why;
  std::array<bool, kMaxDevices> refused{};
  std::array<std::atomic<Device*>, kMaxDevices> devices{};
  std::array<std::atomic<Device*>, kMaxDevices> in_order{};
  std::atomic<int> count{0};
};

Process& process() {
  // Leaked on purpose: threads of the user's process may still launch while it ends.
  static auto* const kProcess = new Process;
  return *kProcess;
}

constexpr std::array<const char*, kKernels> kNames{
    "trapline_index", "trapline_padded",    "trapline_offsets", "trapline_numbers",
    "trapline_rows",  "trapline_sequences", "trapline_mask",    "trapline_compressed"};

// The line that says why the device is not ready; "" when it is.
std::string set_up(Device& device) {
  const Driver& driver = *device.driver;
  const std::string who = "device checks: device " + std::to_string(device.index) + ": ";
  const InContext in_context(device);
  Handle module = nullptr;
  Result result = driver.module_load_data(&module, kPtx);
  for (unsigned k = 0; k < kKernels && result == kSuccess; ++k) {
    result = driver.module_get_function(&device.kernels[k], module, kNames[k]);
  }
  if (result != kSuccess) {
    return who + "the check kernels cannot be loaded, " + driver.name_of(result) + ": update the driver";
  }
  const Mapped alarm = map_memory(device, sizeof(std::uint32_t));
  if (alarm.host == nullptr) return who + "no host memory can be mapped: free some";
  device.alarm = static_cast<std::uint32_t*>(alarm.host);
  device.alarm_address = alarm.device;
  return self_test(device) ? "" : who + "the check kernels do not answer: please report this driver";
}

}  // namespace

Handle Device::take_event() {
  {
    const std::lock_guard lock(events_mutex);
    if (!idle_events.empty()) {
      Handle const event = idle_events.back();
      idle_events.pop_back();
      return event;
    }
  }
  Handle event = nullptr;
  const InContext in_context(*this);
  return succeeded(driver->event_create(&event, kEventDisableTiming)) ? event : nullptr;
}

void Device::give_event(Handle event) {
  const std::lock_guard lock(events_mutex);
  idle_events.push_back(event);
}

InContext::InContext(const Device& device) : driver_(*device.driver) {
  relaxed_ = driver_.thread_exchange_stream_capture_mode(&mode_) == kSuccess;
  if (driver_.ctx_get_current(&before_) != kSuccess || before_ == device.context) return;
  switched_ = driver_.ctx_set_current(device.context) == kSuccess;
}

InContext::~InContext() {
  if (switched_) driver_.ctx_set_current(before_);
  if (relaxed_) driver_.thread_exchange_stream_capture_mode(&mode_);
}

bool is_forked() { return forked.load(std::memory_order_relaxed); }

Device* device_at(int index) {
  if (index < 0 || index >= kMaxDevices) return nullptr;
  return process().devices[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
}

int device_count() { return process().count.load(std::memory_order_acquire); }

Device* ready_device(int order) {
  return process().in_order[static_cast<std::size_t>(order)].load(std::memory_order_acquire);
}

bool make_ready(int index) {
  if (is_forked()) return false;
  const Device* ready = device_at(index);
  if (ready != nullptr && !ready->lost.load(std::memory_order_relaxed)) return true;
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  if (ready != nullptr) {
    all.why = "device checks: device " + std::to_string(index) +
              ": its context is lost after an error: start the program again";
    return false;
  }
  if (index < 0 || index >= kMaxDevices) {
    all.why = "device checks: there is no device " + std::to_string(index) + ": name one below 64";
    return false;
  }
  const auto at = static_cast<std::size_t>(index);
  if (all.devices[at].load(std::memory_order_relaxed) != nullptr) return true;
  if (!all.loaded) {
    pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
    all.loaded = load_driver(all.driver, all.why);
  }
  if (!*all.loaded || all.refused[at]) return false;
  Handle context = nullptr;
  const Result result = all.driver.ctx_get_current(&context);
  if (result != kSuccess || context == nullptr) {
    all.why = "device checks: device " + std::to_string(index) + ": no CUDA context is current" +
              (result == kSuccess ? "" : ", " + all.driver.name_of(result)) + ": use the device once first";
    return false;
  }
  auto* device = new Device;
  device->index = index;
  device->driver = &all.driver;
  device->context = context;
  if (std::string why = set_up(*device); !why.empty()) {
    // What the device holds is kept: a kernel may still write to it.
    all.why = std::move(why);  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)
    all.refused[at] = true;
    return false;
  }
  const int order = all.count.load(std::memory_order_relaxed);
  all.in_order[static_cast<std::size_t>(order)].store(device, std::memory_order_release);
  all.count.store(order + 1, std::memory_order_release);
  all.devices[at].store(device, std::memory_order_release);
  return true;
}

const char* why_not_ready() {
  if (is_forked()) return "device checks: this is a forked process: use CUDA in the parent, or spawn";
  thread_local std::string kept;
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  kept = all.why;
  return kept.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer): it lives as long as the thread
}

Mapped map_memory(Device& device, std::size_t bytes) {
  Mapped mapped;
  const InContext in_context(device);
  const Driver& driver = *device.driver;
  if (!device.succeeded(driver.mem_host_alloc(&mapped.host, bytes, kHostAllocPortableMapped))) return {};
  std::memset(mapped.host, 0, bytes);
  if (!device.succeeded(driver.mem_host_get_device_pointer(&mapped.device, mapped.host, 0))) return {};
  return mapped;
}

}  // namespace trapline::cuda
