// Which part of a predicate an element broke.
#pragma once

#include <cstdint>

#include "trapline/types.h"

namespace trapline {

enum class Reason : std::uint8_t {
  kNone = TRAPLINE_REASON_NONE,
  kBelow = TRAPLINE_REASON_BELOW,
  kAbove = TRAPLINE_REASON_ABOVE,
  kNan = TRAPLINE_REASON_NAN,
  kInf = TRAPLINE_REASON_INF,
  kNegative = TRAPLINE_REASON_NEGATIVE,
  kZeroSum = TRAPLINE_REASON_ZERO_SUM,
  kNotAscending = TRAPLINE_REASON_NOT_ASCENDING,
  kFirstNotZero = TRAPLINE_REASON_FIRST_NOT_ZERO,
  kTooMany = TRAPLINE_REASON_TOO_MANY,
  kTooFew = TRAPLINE_REASON_TOO_FEW,
};

}  // namespace trapline
