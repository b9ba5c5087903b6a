#include "jsonio/dump.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace trapline::jsonio {
namespace {

// The length of the character at `at`, which is valid UTF-8, and its value.
std::size_t decode(const std::string& text, std::size_t at, char32_t& value) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (byte(0) < 0x80) return value = byte(0), 1;
  if (byte(0) < 0xE0) return value = (byte(0) & 0x1FU) << 6U | (byte(1) & 0x3FU), 2;
  if (byte(0) < 0xF0)
    return value = (byte(0) & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU), 3;
  return value = 0x10000, 4;  // none of these is unsafe
}

}  // namespace

std::string dump(const nlohmann::json& value, int indent) {
  std::string text = value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto is_plain = [](char c) { return (c >= 0x20 && c < 0x7F) || c == '\n'; };
  if (std::ranges::all_of(text, is_plain)) return text;
  // Outside its strings JSON is plain, and inside them nlohmann has escaped C0.
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (std::size_t at = 0; at < text.size();) {
    char32_t c = 0;
    const std::size_t length = decode(text, at, c);
    if (c != '\n' && is_unsafe(c)) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escaped.data();
    } else {
      out.append(text, at, length);
    }
    at += length;
  }
  return out;
}

}  // namespace trapline::jsonio
