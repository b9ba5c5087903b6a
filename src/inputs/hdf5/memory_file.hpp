// A file in memory as libhdf5 sees it: it can be read, and is the only file there is. Links and data sets
// that lead to other files find none.
#pragma once

#include <cstddef>
#include <span>

#include "inputs/hdf5/library.hpp"

namespace trapline::inputs {

// Once in a process. Not open: library_says() why.
Id open_memory_file(std::span<const std::byte> bytes);

}  // namespace trapline::inputs
