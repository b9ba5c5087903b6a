// What the sizes of a call's arguments say: whether a row applies, and the bound it sets. No element is read,
// so the same holds for tensors in host memory and in device memory: resolve.hpp makes demands of it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "contracts/contract.hpp"
#include "trapline/types.h"

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
inline const trapline_tensor* tensor_of(const trapline_arg* arg) {
  return arg != nullptr && arg->kind == TRAPLINE_ARG_TENSOR && arg->tensor.dim >= 0 ? &arg->tensor : nullptr;
}

inline std::int64_t numel(const trapline_tensor& tensor) {
  std::int64_t count = 1;
  for (std::int32_t d = 0; d < tensor.dim; ++d) count *= tensor.sizes[d];
  return count;
}

inline bool is_empty(const trapline_tensor& tensor) {
  for (std::int32_t d = 0; d < tensor.dim; ++d) {
    if (tensor.sizes[d] == 0) return true;
  }
  return false;
}

inline bool fits(Dtypes allowed, std::int32_t dtype) {  // trapline_dtype
  switch (allowed) {
    case Dtypes::kInt64:
      return dtype == TRAPLINE_INT64;
    case Dtypes::kInt32Or64:
      return dtype == TRAPLINE_INT64 || dtype == TRAPLINE_INT32;
    case Dtypes::kInt64OrUInt8:
      return dtype == TRAPLINE_INT64 || dtype == TRAPLINE_UINT8;
    case Dtypes::kInteger:
      return dtype >= TRAPLINE_UINT8 && dtype <= TRAPLINE_INT64;
    case Dtypes::kFloating:
      return dtype >= TRAPLINE_FLOAT16 && dtype <= TRAPLINE_FLOAT64;
    case Dtypes::kInt32:
      return dtype == TRAPLINE_INT32;
    case Dtypes::kBool:
      return dtype == TRAPLINE_BOOL;
  }
  return false;
}

// Valid integers end below it; kUnbounded: no upper end. nullopt when the sizes do not fit each other: then
// the operation's own checks have the word.
std::optional<std::int64_t> bound_of(const Contract& contract, const CallArguments& call,
                                     const trapline_tensor& tensor);

// The lengths or ends of segments along `axis`, which is the last of their own dimensions.
bool lies_along(const trapline_tensor& tensor, const Contract& contract, const CallArguments& call);

// The elements of a mask that is broadcast with the tensor that it fills. False: they do not fit each other.
bool broadcast_numel(const trapline_tensor& mask, const trapline_tensor& self, std::int64_t& numel);

// How often an element of a mask counts: masked_scatter broadcasts it to the tensor that is filled. Sizes and
// strides of the result, as many as the longer of the two has dimensions; a dimension of one element has
// stride 0. False: they do not fit each other.
bool broadcast_mask(const trapline_tensor& mask, const trapline_tensor& self, std::span<std::int64_t> sizes,
                    std::span<std::int64_t> strides);

// Segments and compressed rows go from one end to the next: a single end bounds none of them, and PyTorch
// does not look at it (a sparse tensor without rows has one that was never written). The groups of a matrix
// product start at 0, each to its own end.
bool ends_anything(const trapline_tensor& tensor, const Contract& contract);

}  // namespace trapline
