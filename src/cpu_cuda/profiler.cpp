// What PyTorch's profiler asks of CUDA: events are the host's clock, ranges go nowhere.
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <chrono>

#include "cpu_cuda/device.hpp"

namespace trapline::cpu_cuda {
namespace {

struct ProfilerOfHost final : torch::profiler::impl::ProfilerStubs {
  using Event = torch::profiler::impl::ProfilerVoidEventStub;
  using Clock = std::chrono::steady_clock;

  void record(c10::DeviceIndex* device, Event* event, std::int64_t* cpu_ns) const override {
    if (device != nullptr) *device = current_device();
    *event = std::make_shared<Clock::time_point>(Clock::now());
    if (cpu_ns != nullptr) *cpu_ns = c10::getTime();
  }
  float elapsed(const Event* first, const Event* second) const override {
    const auto at = [](const Event* event) { return *static_cast<Clock::time_point*>(event->get()); };
    return std::chrono::duration<float, std::micro>(at(second) - at(first)).count();
  }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> run) const override {
    for (int device = 0; device < device_count(); ++device) run(device);
  }
  void synchronize() const override {}
};

struct RegisterProfiler {
  RegisterProfiler() { torch::profiler::impl::registerCUDAMethods(new ProfilerOfHost); }
} g_register_profiler;

}  // namespace
}  // namespace trapline::cpu_cuda
