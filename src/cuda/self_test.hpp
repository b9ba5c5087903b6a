// One bad element per kernel, once per device, before anything is trusted to it.
#pragma once

#include "cuda/process.hpp"

namespace trapline::cuda {

// Every kernel of the device finds its bad element and says so in mapped memory. It also makes the driver
// load the kernels, which it may put off until the first launch and must not do while a graph is captured.
// Waits for a stream of its own only.
bool self_test(Device& device);

}  // namespace trapline::cuda
