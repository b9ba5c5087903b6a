// The bad elements of an argument, one by one, as the C interface offers them.
#include "contracts/offenders.hpp"

#include <cstddef>
#include <exception>

#include "trapline/capi.h"

namespace {

trapline::TensorView view_of(const trapline_tensor& tensor) {
  const auto dims = static_cast<std::size_t>(tensor.dim);
  return {
      tensor.data, static_cast<trapline::DType>(tensor.dtype), {tensor.sizes, dims}, {tensor.strides, dims}};
}

bool is_usable(std::int32_t predicate, const trapline_scan* scan, const trapline_tensor* tensor) {
  return predicate >= 0 && static_cast<std::size_t>(predicate) < trapline::kPredicates && scan != nullptr &&
         tensor != nullptr && trapline::can_read(*tensor);
}

}  // namespace

extern "C" {

int trapline_offenders(int32_t predicate, const trapline_scan* scan, const trapline_tensor* tensor, int kind,
                       uint8_t* mask) {
  if (!is_usable(predicate, scan, tensor)) return TRAPLINE_NOT_APPLICABLE;
  if (kind != TRAPLINE_OFFENDERS_ELEMENTS && kind != TRAPLINE_OFFENDERS_HEALED)
    return TRAPLINE_NOT_APPLICABLE;
  return trapline::mark_offenders(static_cast<trapline::Predicate>(predicate), *scan, view_of(*tensor),
                                  static_cast<trapline_offenders_kind>(kind), mask)
             ? TRAPLINE_OK
             : TRAPLINE_NOT_APPLICABLE;
}

int trapline_bad_values(int32_t predicate, const trapline_scan* scan, const trapline_tensor* tensor,
                        trapline_value* values, int capacity) {
  if (scan == nullptr || values == nullptr || capacity <= 0) return 0;
  if (scan->bad == 1) {
    *values = {scan->ivalue, scan->fvalue, 1};
    return 1;
  }
  if (!is_usable(predicate, scan, tensor)) return 0;
  try {
    return static_cast<int>(trapline::bad_values(static_cast<trapline::Predicate>(predicate), *scan,
                                                 view_of(*tensor),
                                                 {values, static_cast<std::size_t>(capacity)}));
  } catch (const std::exception&) {  // memory is exhausted
    return 0;
  }
}

int trapline_heal_copy(int32_t predicate, const trapline_scan* scan, const trapline_tensor* tensor,
                       void* healed) {
  if (!is_usable(predicate, scan, tensor)) return TRAPLINE_NOT_APPLICABLE;
  try {
    return trapline::heal_copy(static_cast<trapline::Predicate>(predicate), *scan, view_of(*tensor), healed)
               ? TRAPLINE_OK
               : TRAPLINE_NOT_APPLICABLE;
  } catch (const std::exception&) {
    return TRAPLINE_NOT_APPLICABLE;
  }
}

}  // extern "C"
