// Devices, streams and events as PyTorch's device guard knows them; hooks; generators.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace trapline::cpu_cuda {

constexpr int kMaxDevices = 16;

c10::DeviceIndex device_count() noexcept;
void set_device_count(int count) noexcept;  // before anybody asks
c10::DeviceIndex current_device() noexcept;
// Throws as CUDA does where there is no such device.
c10::DeviceIndex exchange_device(c10::DeviceIndex index);

c10::StreamId current_stream(c10::DeviceIndex index) noexcept;
void set_stream(c10::DeviceIndex index, c10::StreamId stream) noexcept;

// A generator of the device as the one of the CPU that does its work.
at::Generator host_generator(const at::Generator& generator);
const at::Generator& default_generator(c10::DeviceIndex device);

}  // namespace trapline::cpu_cuda
