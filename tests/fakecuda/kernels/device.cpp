// Devices, streams and generators are PyTorch's own.
#include "cpu_cuda/device.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <mutex>

#include "cpu_cuda/streams.hpp"

namespace trapline::cpu_cuda {
namespace {

// What a call draws is a function of the generator's seed and of how much it has given.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t x = seed + 0x9E3779B97F4A7C15ULL * (offset + 1);
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

}  // namespace

c10::DeviceIndex current_device() noexcept { return c10::cuda::current_device(); }

c10::StreamId current_stream(c10::DeviceIndex index) noexcept {
  return c10::cuda::getCurrentCUDAStream(index).id();
}

// A generator of the CPU for one call, made of the state of CUDA's, which goes on as it does on a GPU.
at::Generator host_generator(const at::Generator& generator) {
  TORCH_CHECK(generator.device().is_cuda(), "Expected a 'cuda' device type for generator but found '",
              generator.device().type(), "'");
  auto* cuda = static_cast<at::CUDAGeneratorImpl*>(generator.unsafeGetGeneratorImpl());
  const std::lock_guard<std::mutex> lock(cuda->mutex_);
  const at::PhiloxCudaState state = cuda->philox_cuda_state(4);
  if (!state.captured_) return at::detail::createCPUGenerator(mixed(state.seed_.val, state.offset_.val));
  at::Generator host = at::detail::createCPUGenerator(0);
  enqueue([host, state]() mutable {
    const auto offset = static_cast<std::uint64_t>(*state.offset_.ptr) + state.offset_intragraph_;
    host.set_current_seed(mixed(static_cast<std::uint64_t>(*state.seed_.ptr), offset));
  });
  return host;
}

}  // namespace trapline::cpu_cuda
