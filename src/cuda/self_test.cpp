#include "cuda/self_test.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "core/tensor_view.hpp"

namespace trapline::cuda {
namespace {

// In mapped memory, so that nothing has to be allocated on the device.
struct Bench {
  std::array<Slot, kKernels> slots;
  std::int64_t integer;  // 5, in a range that ends before it
  std::int64_t length;   // 1
  double number;         // -1
};

CheckArgs arguments(const Mapped& memory, Kernel kernel) {
  const auto at = [&](std::size_t offset) { return memory.device + offset; };
  const bool floating = kernel == kNumbersKernel || kernel == kRowsKernel;
  CheckArgs args{};
  args.slot = pointer_to<Slot>(at(offsetof(Bench, slots) + kernel * sizeof(Slot)));
  args.data = pointer_to<const void>(at(floating ? offsetof(Bench, number) : offsetof(Bench, integer)));
  args.lengths = pointer_to<const std::int64_t>(at(offsetof(Bench, length)));
  args.launch = 1;
  args.hi = kernel == kMaskKernel ? 0 : 5;  // of a mask: how many it may take
  args.judge = 0;                           // in [0, 1]; ends
  args.numel = args.last_dim = args.lengths_count = 1;
  args.dtype = static_cast<std::int32_t>(floating ? DType::kFloat64 : DType::kInt64);
  return args;
}

bool answered(const Slot& slot, Kernel kernel) {
  const bool floating = kernel == kNumbersKernel || kernel == kRowsKernel;
  const std::uint64_t integer = kernel == kMaskKernel ? 1 : 5;
  const std::uint64_t value = floating ? std::bit_cast<std::uint64_t>(-1.0) : integer;
  return std::atomic_ref(const_cast<std::uint32_t&>(slot.sequence)).load() == 2 && slot.launch == 1 &&
         slot.bad == 1 && slot.total == 1 && slot.first == 0 && slot.value == value;
}

}  // namespace

bool self_test(Device& device) {
  const Mapped memory = map_memory(device, sizeof(Bench));
  if (memory.host == nullptr) return false;
  auto* bench = static_cast<Bench*>(memory.host);
  bench->integer = 5;
  bench->length = 1;
  bench->number = -1;
  const Driver& driver = *device.driver;
  const InContext in_context(device);
  Handle stream = nullptr;
  if (driver.stream_create(&stream, kStreamNonBlocking) != kSuccess) return false;
  Result result = kSuccess;
  for (unsigned k = 0; k < kKernels && result == kSuccess; ++k) {
    CheckArgs args = arguments(memory, static_cast<Kernel>(k));
    args.alarm = pointer_to<std::uint32_t>(device.alarm_address);
    void* parameters[] = {&args};
    result = driver.launch_kernel(device.kernels[k], 1, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr);
  }
  if (driver.stream_synchronize(stream) != kSuccess || result != kSuccess) return false;
  driver.stream_destroy(stream);
  for (unsigned k = 0; k < kKernels; ++k) {
    if (!answered(bench->slots[k], static_cast<Kernel>(k))) return false;
  }
  return std::atomic_ref(*device.alarm).exchange(0) == 1;
}

}  // namespace trapline::cuda
