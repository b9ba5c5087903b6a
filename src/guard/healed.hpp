// Arguments without their bad elements, for calls on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include "trapline/capi.h"

namespace trapline::guard {

// A copy that the row accepts. Undefined where there is none: an index into nothing, counts that have to add
// up, and what is too large to be copied in passing.
at::Tensor healed_copy(const trapline_contract& row, const trapline_scan& scan, const at::Tensor& tensor);

// Bytes above which nothing is copied just to ask.
constexpr std::int64_t kMaxCopied = std::int64_t{64} << 20;

}  // namespace trapline::guard
