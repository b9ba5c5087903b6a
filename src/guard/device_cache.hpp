// The healed copies of a training step, so that a tensor is not checked again for its backward call, and
// the backward call does not get the bad values that autograd kept.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trapline/device.h"

namespace trapline::guard {

// A copy of this very tensor, unchanged since, that was healed for this stream and at least as strictly as
// `check` wants; undefined when there is none. Only for calls that autograd records or replays: it
// relies on the tensor being unchanged, too, where a kernel outside of torch could write to it unseen.
at::Tensor find_healed(const at::Tensor& tensor, const trapline_device_check& check, void* stream);

void keep_healed(const at::Tensor& tensor, const trapline_device_check& check, void* stream,
                 at::Tensor healed);

// A step is over: its tensors are not seen again.
void forget_healed();

// Bytes above which an argument is not copied (TRAPLINE_HEAL_CAP_MB, 256 where unset).
std::int64_t heal_cap();

}  // namespace trapline::guard
