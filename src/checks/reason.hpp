// Which part of a predicate an element broke.
#pragma once

#include <cstdint>

namespace trapline {

// The numbers are part of the C interface: append only.
enum class Reason : std::uint8_t {
  kNone,
  kBelow,
  kAbove,
  kNan,
  kInf,
  kNegative,
  kZeroSum,
  kNotAscending,
  kFirstNotZero,
  kTooMany,  // counts whose sum is more than there is
  kTooFew,   // counts whose sum is less than it has to be
};

}  // namespace trapline
