#include "core/scalar.hpp"

#include <array>
#include <charconv>

namespace trapline {
namespace {

template <class T>
std::string shortest(T value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), end) : std::string("?");
}

}  // namespace

std::string to_text(const Scalar& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return shortest(*integer);
  const double number = std::get<double>(value);
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  // float32 values arrive widened to double; their own shortest text reads better than 17 digits.
  const auto narrow = static_cast<float>(number);
  if (static_cast<double>(narrow) == number) return shortest(narrow);
  return shortest(number);
}

}  // namespace trapline
