#include "guard/device_stream.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "guard/host_device.hpp"
#include "trapline/device.h"

namespace trapline::guard {
namespace {

using c10::DispatchKey;

constexpr int kMaxDevices = 64;
enum DeviceState : int { kUnknown, kReady, kRefused };
std::atomic<int> g_state[kMaxDevices];
std::atomic<bool> g_used{false};

// A context does not survive fork. A child of a process that had none may make its own.
void watch_device_forks() {
  pthread_atfork(nullptr, nullptr, [] {
    if (!g_used.exchange(false)) return;
    for (auto& state : g_state) state.store(kRefused);
  });
}

// torch::Stream has told its native handle since 2.10 or so; before, only the shim of AOTInductor does.
template <class Guard>
auto native_handle(const Guard& guard, const c10::Stream& stream, void*& out, int)
    -> decltype(guard.getStreamNativeHandle(stream), bool()) {
  out = guard.getStreamNativeHandle(stream);
  return true;
}

template <class Guard>
bool native_handle(const Guard&, const c10::Stream& stream, void*& out, long) {
  using Shim = int (*)(std::int32_t, void**);
  static const Shim shim = [] {
    // Not RTLD_DEFAULT: Python loads torch with RTLD_LOCAL.
    void* library = dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
    return library == nullptr ? nullptr
                              : reinterpret_cast<Shim>(dlsym(library, "aoti_torch_get_current_cuda_stream"));
  }();
  return shim != nullptr && shim(stream.device_index(), &out) == 0;
}

// The driver's own answer; torch's interface for it is younger and has a default that says no.
bool stream_captures(void* stream) {
  using Ask = int (*)(void*, int*);
  static const Ask ask = [] {
    const char* named = std::getenv("TRAPLINE_CUDA_DRIVER");
    void* library = dlopen(named != nullptr && *named != '\0' ? named : "libcuda.so.1", RTLD_LAZY);
    return library == nullptr ? nullptr : reinterpret_cast<Ask>(dlsym(library, "cuStreamIsCapturing"));
  }();
  if (ask == nullptr) return true;
  int status = 0;
  const int error = ask(stream, &status);
  // An error is the answer for the default stream while another one captures. A context that is lost answers
  // with its own error, and captures nothing: what it has reported is to be told.
  constexpr int kFirstOfCaptures = 900, kLastOfCaptures = 908;
  return error == 0 ? status != 0 : error >= kFirstOfCaptures && error <= kLastOfCaptures;
}

// At most one line in a process: the user thinks that the guard is on.
void say_once(const char* why) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::fprintf(stderr, "trapline: guard: arguments on the device are not checked: %s\n", why);
}

}  // namespace

void choose_device() {
  static std::once_flag once;
  std::call_once(once, watch_device_forks);
  const char* named = std::getenv("TRAPLINE_DEVICE_TYPE");
  if (named != nullptr && std::strcmp(named, "host") == 0) {
    g_host_key = DispatchKey::CUDA;
    g_device_autograd_key = DispatchKey::AutogradCUDA;
  } else if (c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) {
    g_device_key = DispatchKey::CUDA;
    g_device_autograd_key = DispatchKey::AutogradCUDA;
  }
}

bool device_ready(const c10::Device& device, bool capturing) {
  const int index = device.index();
  if (index < 0 || index >= kMaxDevices) return false;
  const int state = g_state[index].load(std::memory_order_acquire);
  if (state != kUnknown) return state == kReady;
  if (capturing) return false;  // loading a module and mapping memory are not allowed now
  const bool ready = trapline_device_ready(index) == 1;
  if (!ready) say_once(trapline_device_why());
  if (ready) g_used.store(true);
  g_state[index].store(ready ? kReady : kRefused, std::memory_order_release);
  return ready;
}

bool device_used() { return g_used.load(std::memory_order_relaxed); }

bool current_stream(const c10::Device& device, Stream& out) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  if (!native_handle(guard, guard.getStream(device), out.handle, 0)) return false;
  out.capturing = stream_captures(out.handle);
  return true;
}

bool is_capturing() {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  Stream stream;
  return !current_stream(guard.getDevice(), stream) || stream.capturing;
}

}  // namespace trapline::guard
