// One element of a strided tensor in device memory: where it is, what it is worth, and how it is written.
#pragma once

#include <bit>
#include <cstdint>

#include "checks/element.hpp"
#include "core/tensor_view.hpp"
#include "cuda/kernels/block.hpp"

namespace trapline::cuda {

// Offset in elements of the element at a row-major position.
TRAPLINE_DEVICE std::int64_t offset_of(const CheckArgs& args, std::int64_t position) {
  if (args.dim <= 1) return args.dim == 0 ? 0 : position * args.strides[0];
  std::int64_t offset = 0;
  if (args.numel <= 0x7fffffff) {  // a division of 32 bits costs a fraction of one of 64
    auto rest = static_cast<std::uint32_t>(position);
    TRAPLINE_LOOP
    for (int d = args.dim - 1; d > 0; --d) {
      const auto size = static_cast<std::uint32_t>(args.sizes[d]);
      const std::uint32_t outer = rest / size;
      offset += static_cast<std::int64_t>(rest - outer * size) * args.strides[d];
      rest = outer;
    }
    return offset + static_cast<std::int64_t>(rest) * args.strides[0];
  }
  std::int64_t rest = position;
  TRAPLINE_LOOP
  for (int d = args.dim - 1; d > 0; --d) {
    const std::int64_t outer = rest / args.sizes[d];
    offset += (rest - outer * args.sizes[d]) * args.strides[d];
    rest = outer;
  }
  return offset + rest * args.strides[0];
}

TRAPLINE_DEVICE std::int64_t load_integer(const CheckArgs& args, std::int64_t offset) {
  switch (static_cast<DType>(args.dtype)) {
    case DType::kBool:
      return static_cast<const std::uint8_t*>(args.data)[offset] != 0 ? 1 : 0;
    case DType::kUInt8:
      return static_cast<const std::uint8_t*>(args.data)[offset];
    case DType::kInt8:
      return static_cast<const std::int8_t*>(args.data)[offset];
    case DType::kInt16:
      return static_cast<const std::int16_t*>(args.data)[offset];
    case DType::kInt32:
      return static_cast<const std::int32_t*>(args.data)[offset];
    default:
      return static_cast<const std::int64_t*>(args.data)[offset];
  }
}

// The low bytes of `value` at a position of the copy.
TRAPLINE_DEVICE void store_integer(const CheckArgs& args, std::int64_t position, std::int64_t value) {
  switch (static_cast<DType>(args.dtype)) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
      static_cast<std::uint8_t*>(args.healed)[position] = static_cast<std::uint8_t>(value);
      return;
    case DType::kInt16:
      static_cast<std::uint16_t*>(args.healed)[position] = static_cast<std::uint16_t>(value);
      return;
    case DType::kInt32:
      static_cast<std::uint32_t*>(args.healed)[position] = static_cast<std::uint32_t>(value);
      return;
    default:
      static_cast<std::int64_t*>(args.healed)[position] = value;
      return;
  }
}

// The bits of a floating point number, in the low bytes.
TRAPLINE_DEVICE std::uint64_t load_bits(const CheckArgs& args, std::int64_t offset) {
  switch (static_cast<DType>(args.dtype)) {
    case DType::kFloat16:
    case DType::kBFloat16:
      return static_cast<const std::uint16_t*>(args.data)[offset];
    case DType::kFloat32:
      return static_cast<const std::uint32_t*>(args.data)[offset];
    default:
      return static_cast<const std::uint64_t*>(args.data)[offset];
  }
}

TRAPLINE_DEVICE void store_bits(const CheckArgs& args, std::int64_t position, std::uint64_t bits) {
  switch (static_cast<DType>(args.dtype)) {
    case DType::kFloat16:
    case DType::kBFloat16:
      static_cast<std::uint16_t*>(args.healed)[position] = static_cast<std::uint16_t>(bits);
      return;
    case DType::kFloat32:
      static_cast<std::uint32_t*>(args.healed)[position] = static_cast<std::uint32_t>(bits);
      return;
    default:
      static_cast<std::uint64_t*>(args.healed)[position] = bits;
      return;
  }
}

TRAPLINE_DEVICE double number_of(const CheckArgs& args, std::uint64_t bits) {
  switch (static_cast<DType>(args.dtype)) {
    case DType::kFloat16:
      return static_cast<double>(element::float16_value(static_cast<std::uint16_t>(bits)));
    case DType::kBFloat16:
      return static_cast<double>(element::bfloat16_value(static_cast<std::uint16_t>(bits)));
    case DType::kFloat32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    default:
      return std::bit_cast<double>(bits);
  }
}

// The bits of 1.0.
TRAPLINE_DEVICE std::uint64_t one_of(const CheckArgs& args) {
  switch (static_cast<DType>(args.dtype)) {
    case DType::kFloat16:
      return 0x3C00u;
    case DType::kBFloat16:
      return 0x3F80u;
    case DType::kFloat32:
      return 0x3F800000u;
    default:
      return 0x3FF0000000000000u;
  }
}

}  // namespace trapline::cuda
