// The predicates for one element. The scalar reference, the SIMD scan's bad path and the device kernel share
// these functions, so they use nothing but arithmetic: no containers, no calls that a device compiler lacks.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "checks/reason.hpp"

namespace trapline::element {

// lo <= value < hi. An empty range (hi <= lo) holds nothing.
constexpr Reason index(std::int64_t value, std::int64_t lo, std::int64_t hi) {
  if (value < lo) return Reason::kBelow;
  return value < hi ? Reason::kNone : Reason::kAbove;
}

template <class F>
constexpr bool is_nan(F value) {
  return value != value;
}

template <class F>
constexpr bool is_inf(F value) {
  return value > std::numeric_limits<F>::max() || value < std::numeric_limits<F>::lowest();
}

// lo <= value <= hi.
template <class F>
constexpr Reason interval(F value, F lo, F hi) {
  if (is_nan(value)) return Reason::kNan;
  if (value < lo) return Reason::kBelow;
  return value > hi ? Reason::kAbove : Reason::kNone;
}

template <class F>
constexpr Reason finite(F value) {
  if (is_nan(value)) return Reason::kNan;
  return is_inf(value) ? Reason::kInf : Reason::kNone;
}

// Positive infinity passes: the operations with this contract (poisson) accept it.
template <class F>
constexpr Reason non_negative(F value) {
  if (is_nan(value)) return Reason::kNan;
  return value < F{0} ? Reason::kNegative : Reason::kNone;
}

// One entry of a row of probabilities. Whether the row has a sum is the row's matter: see
// scan_probability_rows.
template <class F>
constexpr Reason probability(F value) {
  const Reason reason = finite(value);
  if (reason != Reason::kNone) return reason;
  return value < F{0} ? Reason::kNegative : Reason::kNone;
}

// Element of a list of offsets; `previous` is the element before it and is not read for the first one.
constexpr Reason offset(std::int64_t value, bool is_first, std::int64_t previous, std::int64_t limit) {
  if (is_first && value != 0) return Reason::kFirstNotZero;
  if (!is_first && value < previous) return Reason::kNotAscending;
  return value > limit ? Reason::kAbove : Reason::kNone;
}

// Element of a list of ends, from 0 to `limit`, each at least the one before it.
constexpr Reason end(std::int64_t value, bool is_first, std::int64_t previous, std::int64_t limit) {
  if (value < 0) return Reason::kBelow;
  if (!is_first && value < previous) return Reason::kNotAscending;
  return value > limit ? Reason::kAbove : Reason::kNone;
}

// Element of a row of compressed indices: they begin at 0, ascend by at most `width` and end at `limit`.
// `previous` is not read for the first one.
constexpr Reason compressed(std::int64_t value, bool is_first, bool is_last, std::int64_t previous,
                            std::int64_t limit, std::int64_t width) {
  if (is_first && value != 0) return Reason::kFirstNotZero;
  if (!is_first && value < previous) return Reason::kNotAscending;
  if (value > limit) return Reason::kAbove;
  // Unsigned, since garbage before it may be anywhere.
  const auto step = static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(previous);
  if (!is_first && step > static_cast<std::uint64_t>(width)) return Reason::kTooMany;
  return is_last && value < limit ? Reason::kTooFew : Reason::kNone;
}

// A count when `left` is what the counts before it leave over.
constexpr Reason count(std::int64_t value, std::int64_t left) {
  if (value < 0) return Reason::kBelow;
  return value > left ? Reason::kTooMany : Reason::kNone;
}

// The value of IEEE binary16 bits; exact, payloads of NaN kept.
constexpr float float16_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, a normal float32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1Fu ? 0xFFu : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

// The value of bfloat16 bits: the upper half of a float32.
constexpr float bfloat16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace trapline::element
