// Visits the elements of a strided view in row-major order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "checks/element.hpp"
#include "core/tensor_view.hpp"

namespace trapline {

// The element types as they lie in memory.
struct Bool {
  std::uint8_t byte;
};
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

// What an element is worth: std::int64_t for integers and bool, double for floating point.
constexpr std::int64_t widen(Bool v) { return v.byte != 0 ? 1 : 0; }
constexpr std::int64_t widen(std::uint8_t v) { return v; }
constexpr std::int64_t widen(std::int8_t v) { return v; }
constexpr std::int64_t widen(std::int16_t v) { return v; }
constexpr std::int64_t widen(std::int32_t v) { return v; }
constexpr std::int64_t widen(std::int64_t v) { return v; }
constexpr double widen(Float16 v) { return static_cast<double>(element::float16_value(v.bits)); }
constexpr double widen(BFloat16 v) { return static_cast<double>(element::bfloat16_value(v.bits)); }
constexpr double widen(float v) { return static_cast<double>(v); }
constexpr double widen(double v) { return v; }

// Tensors over foreign memory need not be aligned to their element size, so elements are copied out.
template <class T>
T load(const T* address) {
  T value;
  // Null only of a tensor without elements, of which none is loaded.
  // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker)
  std::memcpy(&value, static_cast<const void*>(address), sizeof(T));
  return value;
}

// Calls visit(T{}) with the type of the view's elements.
template <class Visit>
auto with_type(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::kBool:
      return visit(Bool{});
    case DType::kUInt8:
      return visit(std::uint8_t{});
    case DType::kInt8:
      return visit(std::int8_t{});
    case DType::kInt16:
      return visit(std::int16_t{});
    case DType::kInt32:
      return visit(std::int32_t{});
    case DType::kInt64:
      return visit(std::int64_t{});
    case DType::kFloat16:
      return visit(Float16{});
    case DType::kBFloat16:
      return visit(BFloat16{});
    case DType::kFloat32:
      return visit(float{});
    case DType::kFloat64:
      break;
  }
  return visit(double{});
}

// Dimensions that matter, outermost first. More than 62 dimensions of size 2 or more overflow numel().
struct Layout {
  static constexpr std::size_t kMax = 64;
  std::size_t dims = 0;
  std::array<std::int64_t, kMax> size;
  std::array<std::int64_t, kMax> stride;  // in elements
};

// Appends an inner dimension, merged with the one before it where their elements follow each other evenly.
inline void push(Layout& layout, std::int64_t size, std::int64_t stride) {
  if (layout.dims > 0 && layout.stride[layout.dims - 1] == size * stride) {
    layout.size[layout.dims - 1] *= size;
    layout.stride[layout.dims - 1] = stride;
    return;
  }
  layout.size[layout.dims] = size;
  layout.stride[layout.dims++] = stride;
}

// The elements of the first `dims` dimensions in row-major order, size-1 dimensions dropped and neighbours
// merged. The view must not be empty. No dimension left means one element, at offset 0.
inline Layout row_major_layout(const TensorView& view, std::size_t dims) {
  Layout layout;
  for (std::size_t d = 0; d < dims; ++d) {
    if (view.sizes[d] != 1) push(layout, view.sizes[d], view.strides[d]);
  }
  return layout;
}

// Calls visit(offset) in order for every combination of the first `dims` dimensions of the layout; `visit`
// returns false to stop. Returns false when it was stopped.
template <class Visit>
bool for_each_offset(const Layout& layout, std::size_t dims, Visit&& visit) {
  std::array<std::int64_t, Layout::kMax> at;
  for (std::size_t d = 0; d < dims; ++d) at[d] = 0;
  std::int64_t offset = 0;
  while (true) {
    if (!visit(offset)) return false;
    std::size_t d = dims;
    while (true) {
      if (d == 0) return true;
      --d;
      offset += layout.stride[d];
      if (++at[d] < layout.size[d]) break;
      offset -= layout.stride[d] * layout.size[d];
      at[d] = 0;
    }
  }
}

}  // namespace trapline
