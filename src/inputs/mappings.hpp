// The memory maps of this process, as a signal handler can look at them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trapline::inputs {

// Never freed: a handler may be looking at it. One whose file was closed is used again.
struct Mapping {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // 0: free
  std::atomic<bool> cut{false};                  // something of it was gone when it was read
  Mapping* next = nullptr;
};

// From here on a read of what is gone from the file gives zeros and sets `cut`.
Mapping* add_mapping(std::span<const std::byte> bytes);
void remove_mapping(Mapping& mapping);
// Calls visit(begin, end) for the part of each mapping that lies in [begin, end).
void for_each_mapping(std::uintptr_t begin, std::uintptr_t end,
                      void (*visit)(std::uintptr_t begin, std::uintptr_t end));
std::uintptr_t page_size();

}  // namespace trapline::inputs
