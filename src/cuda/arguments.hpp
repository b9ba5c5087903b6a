// From a planned check to the kernel that runs it and its parameter.
#pragma once

#include <optional>

#include "cuda/kernels/args.hpp"
#include "cuda/process.hpp"
#include "trapline/types.h"

namespace trapline::cuda {

// nullopt: no kernel knows the predicate for this dtype, or an address is missing or not aligned (a device
// that reads such an address loses its context).
std::optional<Kernel> kernel_of(const trapline_device_check& check, const void* healed, const void* scratch);

// Without slot, alarm, launch and scratch.
CheckArgs arguments_of(const trapline_device_check& check, void* healed);

// As many blocks as are worth it.
unsigned blocks_of(const trapline_device_check& check);

}  // namespace trapline::cuda
