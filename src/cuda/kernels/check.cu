// The check kernels as a device compiler sees them. scripts/ptx.sh makes check.ptx of it.
#include "cuda/kernels/check_body.hpp"
#include "cuda/kernels/mask_body.hpp"

using trapline::cuda::Block;
using trapline::cuda::CheckArgs;
using trapline::cuda::Shared;

#define TRAPLINE_KERNEL(name, body, Value)                                                      \
  extern "C" __global__ void __launch_bounds__(trapline::cuda::kThreads) name(CheckArgs args) { \
    __shared__ __align__(8) unsigned char memory[sizeof(Shared<Value>)];                        \
    body(Block{blockIdx.x, gridDim.x}, args, *reinterpret_cast<Shared<Value>*>(memory));        \
  }

TRAPLINE_KERNEL(trapline_index, trapline::cuda::check_index, std::int64_t)
TRAPLINE_KERNEL(trapline_padded, trapline::cuda::check_padded, std::int64_t)
TRAPLINE_KERNEL(trapline_offsets, trapline::cuda::check_offsets, std::int64_t)
TRAPLINE_KERNEL(trapline_numbers, trapline::cuda::check_numbers, double)
TRAPLINE_KERNEL(trapline_rows, trapline::cuda::check_rows, double)
TRAPLINE_KERNEL(trapline_sequences, trapline::cuda::check_sequences, std::int64_t)
TRAPLINE_KERNEL(trapline_mask, trapline::cuda::check_mask, std::int64_t)
TRAPLINE_KERNEL(trapline_compressed, trapline::cuda::check_compressed, std::int64_t)
