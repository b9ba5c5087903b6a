// A borrowed, read-only view of a strided tensor in host memory. Nothing is copied or owned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "trapline/types.h"

namespace trapline {

enum class DType : std::uint8_t {
  kBool = TRAPLINE_BOOL,
  kUInt8 = TRAPLINE_UINT8,
  kInt8 = TRAPLINE_INT8,
  kInt16 = TRAPLINE_INT16,
  kInt32 = TRAPLINE_INT32,
  kInt64 = TRAPLINE_INT64,
  kFloat16 = TRAPLINE_FLOAT16,
  kBFloat16 = TRAPLINE_BFLOAT16,
  kFloat32 = TRAPLINE_FLOAT32,
  kFloat64 = TRAPLINE_FLOAT64,
};

std::size_t size_of(DType dtype);       // bytes per element
std::string_view name_of(DType dtype);  // "int64", "bfloat16": torch's names
constexpr bool is_floating(DType dtype) { return dtype >= DType::kFloat16; }

struct TensorView {
  const void* data = nullptr;  // first element; may be null when numel() == 0
  DType dtype = DType::kInt64;
  std::span<const std::int64_t> sizes;    // empty: a 0-dim tensor with one element
  std::span<const std::int64_t> strides;  // in elements, one per dimension; may be 0 or negative

  std::int64_t dim() const { return static_cast<std::int64_t>(sizes.size()); }
  std::int64_t numel() const {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return count;
  }
  // Row-major and dense: strides of dimensions of size 1 do not matter, as in PyTorch.
  bool is_contiguous() const {
    std::int64_t expected = 1;
    for (std::size_t d = sizes.size(); d-- > 0;) {
      if (sizes[d] == 1) continue;
      if (strides[d] != expected) return false;
      expected *= sizes[d];
    }
    return true;
  }
};

}  // namespace trapline
