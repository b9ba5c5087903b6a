// Checked arithmetic on what a file says of itself, and the words of an error about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace trapline::inputs {

inline constexpr std::string_view kCopyAgain = "copy or write the file again";

// An error that names the file and the offset of what is wrong in it.
inline Error damaged(const std::string& path, std::uint64_t offset, const std::string& why,
                     std::string_view fix = kCopyAgain) {
  return {"cannot read " + path, why + " (at byte " + std::to_string(offset) + ")", std::string(fix)};
}

// Where no offset is known, or the file is sound and only not for Trapline.
inline Error unreadable(const std::string& path, const std::string& why, std::string_view fix = kCopyAgain) {
  return {"cannot read " + path, why, std::string(fix)};
}

// Text from a file as it may stand in an error: short, one line, printable.
inline std::string in_quotes(std::string_view text, std::size_t most = 60) {
  std::string out = "\"";
  for (const char c : text.substr(0, most)) out += c >= ' ' && c < '\x7f' ? c : '?';
  return out + (text.size() > most ? "...\"" : "\"");
}

// The product; empty when a factor is negative or it does not fit. A zero makes it zero whatever the rest.
inline std::optional<std::int64_t> product(std::span<const std::int64_t> factors, std::int64_t start = 1) {
  bool zero = start == 0;
  bool fits = true;
  std::int64_t result = zero ? 1 : start;
  for (const std::int64_t factor : factors) {
    if (factor < 0) return std::nullopt;
    if (factor == 0) {
      zero = true;
    } else {
      fits = fits && !__builtin_mul_overflow(result, factor, &result);
    }
  }
  if (zero) return 0;
  return fits ? std::optional(result) : std::nullopt;
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Little-endian at any address; the caller has checked that it lies inside.
template <class T>
T load_le(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;  // the project's machines are little-endian
}

}  // namespace trapline::inputs
