// Memory of late work. It is handed out as PyTorch's caching allocator does it: a freed block is given again
// at once, to the stream that it was allocated for, which does its work in order. Blocks that another stream
// has used (record_stream) are not given again.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace trapline::cpu_cuda {

// Host memory for the calling thread's current stream. Never given back to the system.
c10::Allocator* pool();

// `address` begins a block of the pool, or is none of its addresses.
void use_on_stream(const void* address, c10::StreamId stream);

}  // namespace trapline::cpu_cuda
