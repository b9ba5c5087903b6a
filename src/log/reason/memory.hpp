// The numbers in PyTorch's message of a refused allocation: who holds the GPU's memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// Sizes in GiB; 0: the message does not tell. Source: c10/cuda/CUDACachingAllocator.cpp, malloc(), whose
// words changed in PyTorch 2.1; HIP and XPU print the same.
struct MemoryNumbers {
  double asked = 0, total = 0, free = 0;
  double own = 0;        // of this process
  double others = 0;     // of other processes, as far as they are named
  std::string other;     // the largest of these, as printed: a pid
  double allocated = 0;  // by PyTorch, in tensors ...
  double reserved = 0;   // ... and kept for later ones
};

std::optional<MemoryNumbers> memory_numbers(std::string_view message);

// One sentence, and what to do.
std::string memory_summary(const MemoryNumbers& numbers);
std::vector<std::string> memory_help(const MemoryNumbers& numbers);

}  // namespace trapline
