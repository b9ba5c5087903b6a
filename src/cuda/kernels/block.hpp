// The few things in which a block of device threads differs from its host build. A kernel body is a row of
// phases: block.each(f) runs f(thread) for all threads of the block, and all have ended when it returns.
// What outlives a phase lies in shared memory.
#pragma once

#include <cstdint>

#include "cuda/kernels/args.hpp"

#ifdef __CUDACC__
#define TRAPLINE_DEVICE __device__ __forceinline__
#define TRAPLINE_LOOP _Pragma("unroll 1")  // the text is shipped and compiled at start-up: keep it small
#else
#include <atomic>
#define TRAPLINE_DEVICE inline
#define TRAPLINE_LOOP
#endif

namespace trapline::cuda {

#ifdef __CUDACC__

struct Block {
  unsigned index, count;  // this block, blocks of the launch

  template <class Phase>
  TRAPLINE_DEVICE void each(Phase&& phase) const {
    phase(threadIdx.x);
    __syncthreads();
  }

  // The bits 1 and 2 that any thread returned.
  template <class Phase>
  TRAPLINE_DEVICE unsigned each_or(Phase&& phase) const {
    const unsigned flags = phase(threadIdx.x);
    const unsigned first = __syncthreads_or(static_cast<int>(flags & 1u)) != 0 ? 1u : 0u;
    return first | (__syncthreads_or(static_cast<int>(flags & 2u)) != 0 ? 2u : 0u);
  }
};

// Adds one, and wraps to zero after `last`. Returns the count before.
TRAPLINE_DEVICE std::uint32_t count_to(std::uint32_t* counter, std::uint32_t last) {
  return atomicInc(counter, last);
}
TRAPLINE_DEVICE void fence_device() { __threadfence(); }
TRAPLINE_DEVICE void fence_system() { __threadfence_system(); }

// Memory that other blocks or the host use at the same time. Plain volatile accesses: host memory may lie
// behind a bus that knows no atomic operations.
template <class T>
TRAPLINE_DEVICE void store_shared(T* to, T value) {
  *static_cast<volatile T*>(to) = value;
}
template <class T>
TRAPLINE_DEVICE T load_shared(const T* from) {
  return *static_cast<const volatile T*>(from);
}

#else

struct Block {
  unsigned index, count;

  template <class Phase>
  void each(Phase&& phase) const {
    for (unsigned thread = 0; thread < kThreads; ++thread) phase(thread);
  }
  template <class Phase>
  unsigned each_or(Phase&& phase) const {
    unsigned flags = 0;
    for (unsigned thread = 0; thread < kThreads; ++thread) flags |= phase(thread);
    return flags;
  }
};

inline std::uint32_t count_to(std::uint32_t* counter, std::uint32_t last) {
  const std::uint32_t before = *counter;
  *counter = before >= last ? 0 : before + 1;
  return before;
}
inline void fence_device() {}
inline void fence_system() {}  // the stores below are ordered among themselves

template <class T>
void store_shared(T* to, T value) {
  std::atomic_ref<T>(*to).store(value, std::memory_order_release);
}
template <class T>
T load_shared(const T* from) {
  return std::atomic_ref<T>(*const_cast<T*>(from)).load(std::memory_order_acquire);
}

#endif

}  // namespace trapline::cuda
