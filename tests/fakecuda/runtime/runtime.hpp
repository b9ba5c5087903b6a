// The CUDA runtime without a device: the functions that PyTorch's libraries import from libcudart, over the
// driver of src/fakecuda, whose streams, events and lost context they share. Written from the public headers
// and the documentation only. Device memory is host memory; a table tells which is which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "queues.hpp"

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

namespace fakecuda::runtime {

constexpr int kMaxDevices = 2;  // as the driver has

// Every call ends here: what went wrong is also the thread's last error. An int is the driver's result, whose
// numbers are the same.
cudaError_t note(cudaError_t result);
inline cudaError_t note(int result) { return note(static_cast<cudaError_t>(result)); }

// The prologue of every call: nothing works once the context is lost.
#define FAKE_RT_ALIVE() \
  if (machine().lost.load()) return note(cudaErrorAssert)
// And of those that a capture forbids.
#define FAKE_RT_UNSAFE() \
  FAKE_RT_ALIVE();       \
  if (!may_call_unsafe()) return note(cudaErrorStreamCaptureUnsupported)

cudaError_t not_supported(const char* what);  // with one line on stderr

int device_count();
int current_device();
void make_active(int device);  // it has a primary context from now on
bool is_active(int device);

enum class Where { kDevice, kPinned, kRegistered };
struct Range {
  std::uintptr_t begin;
  std::size_t bytes;
  Where where;
  int device;
};
// Empty: memory that CUDA does not know.
std::optional<Range> find_range(const void* address);

std::shared_ptr<Stream> stream_of(cudaStream_t stream);
std::shared_ptr<Graph> capture_of(const std::shared_ptr<Stream>& stream);

// The kernels of PyTorch's operations, once: the library that FAKE_CUDA_KERNELS names.
void load_kernels();

}  // namespace fakecuda::runtime
