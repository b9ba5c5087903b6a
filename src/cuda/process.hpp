// What this process keeps about its devices, and that a forked child keeps nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/driver.hpp"
#include "cuda/kernels/args.hpp"

namespace trapline::cuda {

inline constexpr int kMaxDevices = 64;

enum Kernel : unsigned {
  kIndexKernel,
  kPaddedKernel,
  kOffsetsKernel,
  kNumbersKernel,
  kRowsKernel,
  kSequencesKernel,
  kMaskKernel,
  kCompressedKernel,
  kKernels
};

// Mapped host memory as both sides see it.
struct Mapped {
  void* host = nullptr;
  DevicePointer device = 0;
};

// One context in use. Made by trapline_device_ready, never destroyed.
struct Device {
  int index = 0;
  const Driver* driver = nullptr;
  Handle context = nullptr;
  std::array<Handle, kKernels> kernels{};
  std::uint32_t* alarm = nullptr;  // mapped; a kernel sets it after it wrote a report
  DevicePointer alarm_address = 0;
  std::atomic<bool> lost{false};

  std::mutex events_mutex;
  std::vector<Handle> idle_events;

  // Remembers that the context is lost when the result says so. Returns whether the call succeeded.
  bool succeeded(Result result) {
    if (is_sticky(result)) lost.store(true, std::memory_order_relaxed);
    return result == kSuccess;
  }
  // Null: none can be had.
  Handle take_event();
  void give_event(Handle event);
};

// Makes the device's context current and lets this thread make calls that a capture by another thread would
// otherwise forbid, and be spoiled by.
class InContext {
 public:
  explicit InContext(const Device& device);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const Driver& driver_;
  Handle before_ = nullptr;
  bool switched_ = false;
  bool relaxed_ = false;
  int mode_ = kCaptureModeRelaxed;
};

// True in a child of fork after the parent used a device: nothing of CUDA survives there.
bool is_forked();

// The device of that number; null while it is not ready.
Device* device_at(int index);
int device_count();               // of those that are ready
Device* ready_device(int order);  // in the order in which they became ready

// See trapline_device_ready and _why.
bool make_ready(int index);
const char* why_not_ready();

// Null: none can be had.
Mapped map_memory(Device& device, std::size_t bytes);

}  // namespace trapline::cuda
