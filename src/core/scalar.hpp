// One element's value: an integer or a floating point number, kept exact.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <variant>

namespace trapline {

// Integers are never squeezed through a double: garbage ids near 2^63 must be shown as they are.
using Scalar = std::variant<std::int64_t, double>;

inline bool is_integer(const Scalar& value) { return std::holds_alternative<std::int64_t>(value); }

inline double as_double(const Scalar& value) {
  return std::visit([](auto v) { return static_cast<double>(v); }, value);
}

// Text as a person would write it: 195, 1.5, nan, inf, -inf.
std::string to_text(const Scalar& value);

}  // namespace trapline
