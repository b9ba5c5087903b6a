// All work is late: it is put on the stand-in's queue of the current CUDA stream, which takes it into the
// graph where the stream captures one.
#include "cpu_cuda/streams.hpp"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "cpu_cuda/context.hpp"
#include "fake_cuda.h"

extern "C" void fake_cuda_enqueue_owned(cudaStream_t stream, void (*run)(void*), void* data,
                                        void (*drop)(void*));

namespace trapline::cpu_cuda {
namespace {

// On a stream's thread, which nothing may leave by an exception.
void run(void* data) {
  try {
    (*static_cast<Work*>(data))();
  } catch (const c10::Error& error) {
    lose_context(std::string("fake_cuda: late work failed: ") + error.what_without_backtrace());
  } catch (const std::exception& error) {
    lose_context(std::string("fake_cuda: late work failed: ") + error.what());
  }
}

struct AlwaysLate {
  AlwaysLate() {
    g_late = true;
    g_captures.store(1);  // the runtime is asked each time
  }
} g_always_late;

}  // namespace

bool captures(c10::StreamId) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(c10::cuda::getCurrentCUDAStream(), &status) == cudaSuccess &&
         status != cudaStreamCaptureStatusNone;
}

void enqueue(Work work) {
  fake_cuda_enqueue_owned(c10::cuda::getCurrentCUDAStream(), &run, new Work(std::move(work)),
                          [](void* data) { delete static_cast<Work*>(data); });
  if (launches_block() && !is_capturing()) wait_for_stream();
}

void wait_for_stream() {
  check_context();
  C10_CUDA_CHECK(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream()));
}

bool graphs_own_memory() noexcept { return false; }  // PyTorch's private pools do

}  // namespace trapline::cpu_cuda
