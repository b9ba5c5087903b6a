// Memory of one size, kept for the next object of its kind. What a call leaves behind is larger than what
// malloc keeps at hand for a thread, and often freed by another thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <new>

#include "guard/fork_mutex.hpp"

namespace trapline::guard {

// An allocator of single objects: any thread may free what another one has allocated.
template <class T>
class Recycled {
 public:
  using value_type = T;
  Recycled() = default;
  template <class Other>
  explicit Recycled(const Recycled<Other>&) {}

  T* allocate(std::size_t count) {
    if (count == 1) {
      Free& all = free_blocks();
      const std::lock_guard<ForkMutex> lock(all.mutex);
      if (all.count > 0) return static_cast<T*>(all.blocks[--all.count]);
    }
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(alignof(T))));
  }

  void deallocate(T* memory, std::size_t count) noexcept {
    if (count == 1) {
      Free& all = free_blocks();
      const std::lock_guard<ForkMutex> lock(all.mutex);
      if (all.count < kMax) {
        all.blocks[all.count++] = memory;
        return;
      }
    }
    ::operator delete(memory, std::align_val_t(alignof(T)));
  }

  template <class Other>
  bool operator==(const Recycled<Other>&) const {
    return true;
  }
  template <class Other>
  bool operator!=(const Recycled<Other>&) const {
    return false;
  }

 private:
  static constexpr std::size_t kMax = 256;
  struct Free {
    ForkMutex mutex;
    std::size_t count = 0;
    void* blocks[kMax];
  };
  static Free& free_blocks() {
    static auto* all = new Free;  // never destroyed: threads may outlive static destruction
    return *all;
  }
};

}  // namespace trapline::guard
