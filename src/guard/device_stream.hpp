// Which device is guarded, and the stream that an operation is about to run on.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>

namespace trapline::guard {

// CUDA's dense backend key; Undefined where this torch has no such device. Set by install().
inline c10::DispatchKey g_device_key = c10::DispatchKey::Undefined;
inline c10::DispatchKey g_device_autograd_key = c10::DispatchKey::Undefined;

void choose_device();

inline bool has_device() { return g_device_key != c10::DispatchKey::Undefined; }

// The next kernel is the guarded device's own dense one; for the same reasons as reaches_dense_cpu.
inline bool reaches_device(c10::DispatchKeySet below) {
  return has_device() &&
         below.remove(c10::DispatchKey::PythonDispatcher).highestPriorityTypeId() == g_device_key;
}

// True once the driver, the module and the mapped memory of this device are there. Where they cannot be had,
// says so once on stderr. `device` must be current.
bool device_ready(const c10::Device& device, bool capturing);

// Whether the guard has launched anything in this process. False in a child of fork.
bool device_used();

struct Stream {
  void* handle = nullptr;  // CUstream; null is the default stream
  bool capturing = false;
};

// The current stream of the current device. False: torch does not tell its handle.
bool current_stream(const c10::Device& device, Stream& out);

// Whether this thread's current stream on the current device captures a graph: nothing may wait or raise
// then.
bool is_capturing();

}  // namespace trapline::guard
