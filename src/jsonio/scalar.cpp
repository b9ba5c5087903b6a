#include "jsonio/scalar.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "jsonio/access.hpp"

namespace trapline::jsonio {
namespace {

template <class Number>
std::optional<Scalar> parsed(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end ? std::optional(Scalar(number)) : std::nullopt;
}

}  // namespace

nlohmann::json to_json(const Scalar& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (*integer > kExact || *integer < -kExact) return to_text(value);
    return *integer;
  }
  const double number = std::get<double>(value);
  if (!std::isfinite(number)) return to_text(value);
  return number;
}

std::optional<Scalar> to_scalar(const nlohmann::json& value) {
  if (const auto number = integer(value)) return Scalar(*number);
  if (value.is_number()) return Scalar(value.get<double>());
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "nan") return Scalar(std::numeric_limits<double>::quiet_NaN());
  if (text == "inf") return Scalar(std::numeric_limits<double>::infinity());
  if (text == "-inf") return Scalar(-std::numeric_limits<double>::infinity());
  const auto whole = parsed<std::int64_t>(text);
  return whole ? whole : parsed<double>(text);
}

}  // namespace trapline::jsonio
