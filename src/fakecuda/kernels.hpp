// The check kernels' host build, by name.
#pragma once

#include <random>

#include "cuda/kernels/args.hpp"

namespace fakecuda {

using HostKernel = void (*)(const trapline::cuda::CheckArgs& args, unsigned blocks, std::minstd_rand& order);

// Null: there is no such kernel.
HostKernel find_kernel(const char* name);

}  // namespace fakecuda
