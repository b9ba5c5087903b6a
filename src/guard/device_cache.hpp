// The healed copies of a training step, so that a tensor is not checked again for its backward call, and
// the backward call does not get the bad values that autograd kept.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "guard/device_records.hpp"
#include "trapline/device.h"

namespace trapline::guard {

// The nodes of the calls that used one copy, besides the call it was made for.
struct CopyUsers {
  std::mutex mutex;
  std::vector<NodeName> nodes;
};

// A copy of this very tensor, unchanged since, that was healed for this stream and at least as strictly as
// `check` wants; undefined when there is none. Only for calls that autograd records or replays: it
// relies on the tensor being unchanged, too, where a kernel outside of torch could write to it unseen.
// `node`: of the call that will use the copy.
at::Tensor find_healed(const at::Tensor& tensor, const trapline_device_check& check, void* stream,
                       const std::optional<NodeName>& node);

void keep_healed(const at::Tensor& tensor, const trapline_device_check& check, void* stream,
                 at::Tensor healed, std::shared_ptr<CopyUsers> users);

// A step is over: its tensors are not seen again.
void forget_healed();

// The tensor is known to be bad: its next use is checked, and reported, again.
void forget_healed(const TensorRef& tensor);

// Bytes above which an argument is not copied (TRAPLINE_HEAL_CAP_MB, 256 where unset).
std::int64_t heal_cap();

}  // namespace trapline::guard
