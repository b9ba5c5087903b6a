// The text of kernels/check.ptx, put into the library at build time.
#pragma once

namespace trapline::cuda {

extern const char* const kPtx;

}  // namespace trapline::cuda
