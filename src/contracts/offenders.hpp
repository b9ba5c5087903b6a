// Which elements of a violated argument are bad, one by one: what a report says of them, and what takes their
// place in a harmless copy.
#pragma once

#include <cstdint>
#include <span>

#include "contracts/contract.hpp"
#include "core/tensor_view.hpp"
#include "trapline/types.h"

namespace trapline {

// The tensor as a view; false when its elements cannot be read.
bool can_read(const trapline_tensor& tensor);

// One byte for each element in row-major order: 1 where it is bad. False, with nothing marked, where that is
// not known; include/trapline/capi.h says when.
bool mark_offenders(Predicate predicate, const trapline_scan& scan, const TensorView& tensor,
                    trapline_offenders_kind kind, std::uint8_t* mask);

// Distinct bad values with their counts, most frequent first; returns how many were written, 0 where they
// cannot be told. Throws when memory is exhausted.
std::size_t bad_values(Predicate predicate, const trapline_scan& scan, const TensorView& tensor,
                       std::span<trapline_value> values);

// The contiguous harmless copy; false where there is none. Throws when memory is exhausted.
bool heal_copy(Predicate predicate, const trapline_scan& scan, const TensorView& tensor, void* healed);

}  // namespace trapline
