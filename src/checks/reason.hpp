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
};

}  // namespace trapline
