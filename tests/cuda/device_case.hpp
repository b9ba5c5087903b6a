// One call with random arguments, checked on the host and on a stream.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fake_cuda.h"
#include "random_case.hpp"
#include "trapline/device.h"

extern "C" {
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamSynchronize(void* stream);
}

namespace trapline::cuda_test {

// Sanitizers make the host build ten times slower; what they look for does not need as many cases.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kFewer = 10;
#else
inline constexpr int kFewer = 1;
#endif

// Uses the driver without a device from here on.
inline void use_fake_driver() {
  ASSERT_EQ(setenv("TRAPLINE_CUDA_DRIVER", TRAPLINE_FAKE_CUDA, 1), 0);
  ASSERT_EQ(trapline_device_ready(0), 1) << trapline_device_why();
}

inline const trapline_contract* row(const std::string& id) {
  const trapline_contract* found = find_row(id);
  EXPECT_NE(found, nullptr) << "no row " << id;
  return found;
}

// Memory that is zeroed and aligned as a device allocator gives it.
struct Memory {
  explicit Memory(std::size_t bytes) {
    const std::size_t rounded = (bytes / 512 + 1) * 512;
    data.reset(std::aligned_alloc(512, rounded));
    std::memset(data.get(), 0, rounded);
  }
  void* get() const { return data.get(); }

  std::unique_ptr<void, decltype(&std::free)> data{nullptr, &std::free};
};

// A stream with the scratch that its launches share.
struct Lane {
  Lane() { EXPECT_EQ(cuStreamCreate(&stream, 1), 0); }
  void* stream = nullptr;
  Memory scratch{64 * 1024};
};

// Launches one check. Returns the slot, or -1.
inline std::int64_t launch(const Lane& lane, const trapline_device_check& check, void* healed,
                           int flags = 0) {
  const std::int64_t slot = trapline_device_reserve(0, lane.stream, flags);
  if (slot < 0) return -1;
  const std::int64_t bytes = trapline_device_scratch(&check, flags);
  EXPECT_LE(bytes, 64 * 1024);
  void* scratch = bytes > 0 ? lane.scratch.get() : nullptr;
  return trapline_device_launch(0, lane.stream, slot, &check, healed, scratch, flags) == 1 ? slot : -1;
}

// The check of one label in [0, 10): the smallest there is.
inline trapline_device_check one_label(const std::int64_t* label) {
  const std::int64_t size = 1, stride = 1, sizes[] = {10, 1}, strides[] = {1, 1};
  const trapline_arg argument = tensor_arg({label, DType::kInt64, {&size, 1}, {&stride, 1}});
  const trapline_arg bound = tensor_arg({nullptr, DType::kFloat32, sizes, strides});
  trapline_device_check check{};
  trapline_scan scan{};
  int count = 0;
  EXPECT_EQ(trapline_device_plan(row("embedding.indices"), &argument, &bound, nullptr, nullptr, &check, 1,
                                 &count, &scan),
            TRAPLINE_PLAN_CHECK);
  return check;
}

}  // namespace trapline::cuda_test
