// What a row of the contracts table demands of one call. Only sizes, strides, dtypes and numbers are looked
// at, so that host (check_call) and device (plan_call) carry out the same demands, each in its own way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "contracts/bounds.hpp"
#include "contracts/contract.hpp"
#include "trapline/types.h"

namespace trapline {

// What must hold for one tensor. Without initializers on purpose: room for several is made at every call.
struct Demand {
  const trapline_tensor* tensor;
  const trapline_arg* with;  // kPaddedIndex: the lengths; kMaskCount: the tensor it is broadcast with
  std::int64_t lo, hi;       // as in trapline_scan
  std::int64_t also;         // a value that is allowed besides, when has_also; kCompressed: the largest step
  std::int32_t list_position;  // which tensor of a list; -1 when the argument is no list
  Predicate predicate;         // kIndexList and kPivots have come down to indices
  Heal heal;
  bool has_also;
};

inline constexpr std::size_t kMaxDemands = 64;  // a tensor has no more dimensions to be indexed

// The demands, at the front of `room`. None: the row does not apply, and the operation's own checks have the
// word, or it accepts such a call (an empty result, for which nothing is read).
std::span<const Demand> resolve(const Contract& contract, const CallArguments& call,
                                std::span<Demand, kMaxDemands> room);

// kPaddedIndex, when the lengths are at hand: `at(row)` of each row. All fit the labels, which are
// (rows, longest), or all in one row.
template <class At>
bool lengths_fit(std::int64_t rows, const At& at, const trapline_tensor& labels) {
  const bool padded = labels.dim == 2;
  if (padded && rows != labels.sizes[0]) return false;
  const std::int64_t longest = padded ? labels.sizes[1] : numel(labels);
  std::int64_t left = longest;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = at(row);
    if (length < 0 || length > (padded ? longest : left)) return false;
    if (!padded) left -= length;
  }
  return padded || left == 0;
}

}  // namespace trapline
