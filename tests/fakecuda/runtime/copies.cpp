// Copies and fills, on a stream. Pageable memory is read before the call returns, and written; page-locked
// memory when its turn comes.
#include <cstring>
#include <memory>
#include <vector>

#include "runtime.hpp"

using namespace fakecuda;
using namespace fakecuda::runtime;

extern "C" int cuStreamSynchronize(void* stream);

namespace {

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t handle) {
  FAKE_RT_ALIVE();
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return note(cudaErrorInvalidValue);
  const auto stream = stream_of(handle);
  const auto now = [=] { std::memcpy(to, from, bytes); };
  if (capture_of(stream) != nullptr) {
    stream->enqueue(now);
    return cudaSuccess;
  }
  if (!find_range(from)) {
    const auto* begin = static_cast<const char*>(from);
    const auto staged = std::make_shared<const std::vector<char>>(begin, begin + bytes);
    stream->enqueue([=] { std::memcpy(to, staged->data(), bytes); });
  } else {
    stream->enqueue(now);
  }
  if (!find_range(to)) return note(cuStreamSynchronize(handle));
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return copy(to, from, bytes, stream);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return copy(to, from, bytes, stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  FAKE_RT_UNSAFE();
  const cudaError_t result = copy(to, from, bytes, nullptr);
  return result != cudaSuccess ? result : note(cuStreamSynchronize(nullptr));
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream) {
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t result = copy(static_cast<char*>(to) + row * to_pitch,
                                    static_cast<const char*>(from) + row * from_pitch, width, stream);
    if (result != cudaSuccess) return result;
  }
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  FAKE_RT_ALIVE();
  stream_of(stream)->enqueue([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}
