// What an operation was called with, in the words of the C interface: tensors are described, never copied.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <vector>

#include "guard/host_device.hpp"
#include "trapline/capi.h"

namespace trapline::guard {

// One argument of a call, boxed or not. Borrowed.
struct Argument {
  std::int32_t kind = TRAPLINE_ARG_NONE;
  const at::Tensor* tensor = nullptr;
  std::int64_t integer = 0;
  c10::ArrayRef<c10::IValue> list;
};

inline Argument view_of(const c10::IValue& value) {
  Argument argument;
  if (value.isTensor()) {
    argument.kind = TRAPLINE_ARG_TENSOR;
    argument.tensor = &value.toTensor();
  } else if (value.isInt() || value.isBool()) {
    argument.kind = TRAPLINE_ARG_INT;
    argument.integer = value.isBool() ? static_cast<std::int64_t>(value.toBool()) : value.toInt();
  } else if (value.isList()) {
    argument.kind = TRAPLINE_ARG_LIST;
    argument.list = value.toListRef();
  }
  return argument;
}

inline std::int32_t dtype_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Bool:
      return TRAPLINE_BOOL;
    case c10::ScalarType::Byte:
      return TRAPLINE_UINT8;
    case c10::ScalarType::Char:
      return TRAPLINE_INT8;
    case c10::ScalarType::Short:
      return TRAPLINE_INT16;
    case c10::ScalarType::Int:
      return TRAPLINE_INT32;
    case c10::ScalarType::Long:
      return TRAPLINE_INT64;
    case c10::ScalarType::Half:
      return TRAPLINE_FLOAT16;
    case c10::ScalarType::BFloat16:
      return TRAPLINE_BFLOAT16;
    case c10::ScalarType::Float:
      return TRAPLINE_FLOAT32;
    case c10::ScalarType::Double:
      return TRAPLINE_FLOAT64;
    default:
      return TRAPLINE_OTHER_DTYPE;
  }
}

// Only sizes and dtype: enough of a tensor that bounds another.
[[gnu::always_inline]] inline bool describe_shape(const at::Tensor& tensor, trapline_tensor& out) {
  if (!tensor.defined()) return false;
  const c10::IntArrayRef sizes = tensor.sizes();
  out.data = nullptr;
  out.sizes = sizes.data();
  out.strides = nullptr;
  out.dim = static_cast<std::int32_t>(sizes.size());
  out.dtype = dtype_of(tensor.scalar_type());
  return true;
}

// Where the tensors are whose elements are read; what is elsewhere can only give a bound.
enum class Place { kHost, kDevice };

// False when the tensor has no strides to speak of; then no row applies to it.
[[gnu::always_inline]] inline bool describe(const at::Tensor& tensor, trapline_tensor& out,
                                            Place place = Place::kHost) {
  if (!describe_shape(tensor, out) || tensor.layout() != c10::kStrided) return false;
  out.strides = tensor.strides().data();
  // tensor.data_ptr() would un-share a lazily copied tensor, and has_storage() is virtual; the guard only
  // looks.
  const c10::Storage& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  if (!storage || in_host_memory(tensor) != (place == Place::kHost)) return true;
  const void* start = storage.data();
  if (start == nullptr) return true;
  out.data = static_cast<const char*>(start) +
             tensor.storage_offset() * static_cast<std::int64_t>(tensor.itemsize());
  return true;
}

// An argument as trapline_check takes it. What a list holds is described into `tensors` and `integers`, which
// must live as long as the result; only a list of integers allocates, and only rare operations have one.
constexpr int kMaxList = 64;
struct Scratch {
  trapline_tensor tensors[kMaxList];
  std::vector<std::int64_t> integers;
};

inline bool describe_list(c10::ArrayRef<c10::IValue> list, trapline_arg& out, Scratch& scratch, Place place) {
  if (!list.empty() && list[0].isInt()) {
    out.kind = TRAPLINE_ARG_SIZES;
    for (const c10::IValue& element : list) scratch.integers.push_back(element.toInt());
    out.tensor = {nullptr, scratch.integers.data(), nullptr, static_cast<std::int32_t>(list.size()),
                  TRAPLINE_INT64};
    return true;
  }
  if (list.size() > kMaxList) return false;
  out.kind = TRAPLINE_ARG_LIST;
  out.list = scratch.tensors;
  out.list_size = static_cast<std::int32_t>(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].isTensor() || !list[i].toTensor().defined()) {
      scratch.tensors[i].dim = -1;
    } else if (!describe(list[i].toTensor(), scratch.tensors[i], place)) {
      return false;
    }
  }
  return true;
}

// The elements of a bound are not read.
enum class Part { kElements, kShape };

// False: the contract cannot be judged.
[[gnu::always_inline]] inline bool describe(const Argument& argument, Part part, trapline_arg& out,
                                            Scratch& scratch, Place place = Place::kHost) {
  out.kind = argument.kind;
  switch (argument.kind) {
    case TRAPLINE_ARG_TENSOR:
      return part == Part::kElements ? describe(*argument.tensor, out.tensor, place)
                                     : describe_shape(*argument.tensor, out.tensor);
    case TRAPLINE_ARG_INT:
      out.integer = argument.integer;
      return true;
    case TRAPLINE_ARG_LIST:
      return describe_list(argument.list, out, scratch, place);
    default:
      return false;
  }
}

}  // namespace trapline::guard
