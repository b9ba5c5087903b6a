// What the sizes of a call's arguments say: whether a row applies, and the bound it sets. No element is read,
// so the same holds for tensors in host memory (check_call) and in device memory (plan_call).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "contracts/contract.hpp"
#include "trapline/capi.h"

namespace trapline {

// The arguments that the row names; null where it names none. They are the C structures, so that nothing is
// copied between the guard and the check.
struct CallArguments {
  const trapline_arg* argument = nullptr;
  const trapline_arg* bound = nullptr;
  const trapline_arg* dim = nullptr;
  const trapline_arg* also = nullptr;
};

inline constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

// The tensor of the argument; null when it is none.
const trapline_tensor* tensor_of(const trapline_arg* arg);

std::int64_t numel(const trapline_tensor& tensor);
bool is_empty(const trapline_tensor& tensor);
bool fits(Dtypes allowed, std::int32_t dtype);  // trapline_dtype

// Valid integers end below it; kUnbounded: no upper end. nullopt when the sizes do not fit each other: then
// the operation's own checks have the word.
std::optional<std::int64_t> bound_of(const Contract& contract, const CallArguments& call,
                                     const trapline_tensor& tensor);

// The lengths or ends of segments along `axis`, which is the last of their own dimensions.
bool lies_along(const trapline_tensor& tensor, const Contract& contract, const CallArguments& call);

}  // namespace trapline
