// The numbers in PyTorch's message of a refused allocation, in the words of all its releases.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "log/reason/memory.hpp"
#include "reason_case.hpp"

namespace trapline {
namespace {

constexpr std::string_view kNow =
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 7.06 "
    "MiB "
    "is free. Process 393 has 20.05 GiB memory in use. Process 17 has 512.00 MiB memory in use. Including "
    "non-PyTorch memory, this process has 3.00 GiB memory in use. Of the allocated memory 1.20 GiB is "
    "allocated "
    "by PyTorch, and 102.40 MiB is reserved by PyTorch but unallocated.";
constexpr std::string_view kBefore =
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 16.00 GiB total capacity; 8.00 GiB already "
    "allocated; "
    "1.00 GiB free; 13.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
    "setting "
    "max_split_size_mb to avoid fragmentation.";

std::string help_of(std::string_view message) {
  const auto numbers = memory_numbers(message);
  return numbers ? memory_help(*numbers).front() : "";
}

TEST(Memory, TheNumbersOfToday) {
  const auto n = memory_numbers(kNow);
  ASSERT_TRUE(n);
  EXPECT_DOUBLE_EQ(n->asked, 20.0 / 1024);
  EXPECT_DOUBLE_EQ(n->total, 23.65);
  EXPECT_DOUBLE_EQ(n->free, 7.06 / 1024);
  EXPECT_DOUBLE_EQ(n->own, 3);
  EXPECT_DOUBLE_EQ(n->others, 20.55);
  EXPECT_EQ(n->other, "393");
  EXPECT_DOUBLE_EQ(n->allocated, 1.2);
  EXPECT_NEAR(n->reserved, 1.3, 1e-9);
}

TEST(Memory, TheNumbersOfOlderReleases) {
  const auto n = memory_numbers(kBefore);
  ASSERT_TRUE(n);
  EXPECT_DOUBLE_EQ(n->asked, 2);
  EXPECT_DOUBLE_EQ(n->total, 16);
  EXPECT_DOUBLE_EQ(n->free, 1);
  EXPECT_DOUBLE_EQ(n->allocated, 8);
  EXPECT_DOUBLE_EQ(n->reserved, 13);
  EXPECT_EQ(n->others, 0);
}

TEST(Memory, OtherMessagesHaveNone) {
  EXPECT_FALSE(memory_numbers("CUDA out of memory."));
  EXPECT_FALSE(memory_numbers("CUDA out of memory. Tried to allocate 2.00 GiB"));
  EXPECT_FALSE(memory_numbers(""));
}

TEST(Memory, WhoHoldsItDecidesTheHelp) {
  EXPECT_NE(help_of(kNow).find("process 393 holds most of the GPU"), std::string::npos) << help_of(kNow);
  EXPECT_NE(help_of(kBefore).find("keeps 5.0 GiB that no tensor uses"), std::string::npos)
      << help_of(kBefore);
  EXPECT_NE(
      help_of("CUDA out of memory. Tried to allocate 40.00 GiB (GPU 0; 16.00 GiB total capacity; 1.00 GiB "
              "already allocated; 14.00 GiB free; 1.50 GiB reserved in total by PyTorch)")
          .find("larger than the whole GPU"),
      std::string::npos);
  EXPECT_NE(
      help_of("CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 16.00 GiB total capacity; 1.00 GiB "
              "already allocated; 0.50 GiB free; 1.50 GiB reserved in total by PyTorch)")
          .find("other processes hold about 14.0 GiB"),
      std::string::npos);
  EXPECT_NE(
      help_of("CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 16.00 GiB total capacity; 14.00 GiB "
              "already allocated; 0.50 GiB free; 14.50 GiB reserved in total by PyTorch)")
          .find("lower the batch size"),
      std::string::npos);
}

TEST(Memory, TheReportSaysIt) {
  const Finding f = root("torch.OutOfMemoryError: " + std::string(kNow) + "\n");
  EXPECT_EQ(f.cause, Cause::kOutOfMemory);
  EXPECT_EQ(
      f.summary,
      "out of device memory: 20 MiB were asked of a GPU of 23.6 GiB of which 7 MiB were free; this process "
      "held 3.0 GiB, other processes 20.6 GiB");
}

}  // namespace
}  // namespace trapline
