#include "report/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "jsonio/dump.hpp"

namespace trapline {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct Range {
  char32_t first, last;
};

// Combining marks, joiners and variation selectors that scripts in source code and data sets really use.
constexpr auto kZeroWidth = std::to_array<Range>({
    {0x0300, 0x036F}, {0x0483, 0x0489},   {0x0591, 0x05BD},   {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x06D6, 0x06DC}, {0x0900, 0x0902},   {0x093C, 0x093C},   {0x0941, 0x0948}, {0x094D, 0x094D},
    {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},   {0x0E47, 0x0E4E},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
    {0x200B, 0x200D}, {0x20D0, 0x20FF},   {0x302A, 0x302D},   {0x3099, 0x309A}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF},
});

constexpr auto kWide = std::to_array<Range>({
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},   {0x25FD, 0x25FE},
    {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x2705, 0x2705},
    {0x274C, 0x274C},   {0x2753, 0x2755},   {0x2795, 0x2797},   {0x2B50, 0x2B50},   {0x2E80, 0x303E},
    {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F265},
    {0x1F300, 0x1F320}, {0x1F32D, 0x1F3FA}, {0x1F400, 0x1F4FC}, {0x1F4FF, 0x1F53D}, {0x1F550, 0x1F567},
    {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5}, {0x1F7E0, 0x1F7EB}, {0x1F90C, 0x1F9FF}, {0x1FA70, 0x1FAFF},
    {0x20000, 0x3FFFD},
});

template <std::size_t N>
bool contains(const std::array<Range, N>& ranges, char32_t c) {
  const auto next = std::ranges::upper_bound(ranges, c, {}, &Range::first);
  return next != ranges.begin() && c <= std::prev(next)->last;
}

std::string escaped(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c < 0x100) return fmt::format("\\x{:02x}", static_cast<std::uint32_t>(c));
  if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
  return fmt::format("\\U{:08x}", static_cast<std::uint32_t>(c));
}

}  // namespace

CodePoint decode_utf8(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(position);
  if (lead < 0x80) return {lead, 1, true};
  std::size_t length = 0;
  char32_t value = 0;
  char32_t smallest = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2, value = lead & 0x1FU, smallest = 0x80;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3, value = lead & 0x0FU, smallest = 0x800;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4, value = lead & 0x07U, smallest = 0x10000;
  } else {
    return {kReplacement, 1, false};
  }
  if (text.size() - position < length) return {kReplacement, 1, false};
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned char next = byte(position + i);
    if ((next & 0xC0U) != 0x80U) return {kReplacement, 1, false};
    value = (value << 6U) | (next & 0x3FU);
  }
  if (value < smallest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    return {kReplacement, 1, false};
  }
  return {value, length, true};
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t bits) {
    text.push_back(static_cast<char>(static_cast<unsigned char>(bits)));
  };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0U | (c >> 6U)), put(0x80U | (c & 0x3FU));
  } else if (c < 0x10000) {
    put(0xE0U | (c >> 12U)), put(0x80U | ((c >> 6U) & 0x3FU)), put(0x80U | (c & 0x3FU));
  } else {
    put(0xF0U | (c >> 18U)), put(0x80U | ((c >> 12U) & 0x3FU));
    put(0x80U | ((c >> 6U) & 0x3FU)), put(0x80U | (c & 0x3FU));
  }
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode_utf8(text, i);
    if (point.valid) {
      out.append(text, i, point.length);
    } else {
      append_utf8(out, kReplacement);
    }
    i += point.length;
  }
  return out;
}

int width_of(char32_t c) {
  if (c < 0x300) return 1;
  if (contains(kZeroWidth, c)) return 0;
  return contains(kWide, c) ? 2 : 1;
}

int width_of(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode_utf8(text, i);
    width += width_of(point.value);
    i += point.length;
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode_utf8(text, i);
    if (point.value == '\t') {
      out.push_back(' ');
    } else if (jsonio::is_unsafe(point.value)) {
      out += escaped(point.value);
    } else {
      append_utf8(out, point.value);
    }
    i += point.length;
  }
  return out;
}

std::string ascii(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode_utf8(text, i);
    i += point.length;
    if (point.value < 0x80) {
      out.push_back(static_cast<char>(point.value));
    } else if (point.value == 0x2018 || point.value == 0x2019) {
      out.push_back('\'');
    } else if (point.value == 0x201C || point.value == 0x201D) {
      out.push_back('"');
    } else if (point.value == 0x2026) {
      out += "...";
    } else if (point.value == 0x2013 || point.value == 0x2014 || point.value == 0x2212) {
      out.push_back('-');
    } else {
      out += point.valid ? escaped(point.value) : "?";
    }
  }
  return out;
}

std::string_view cut_utf8(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  // Step back over at most three continuation bytes; text that is not UTF-8 is cut where it is.
  std::size_t end = bytes;
  for (int step = 0; step < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U; ++step)
    --end;
  return text.substr(0, end);
}

}  // namespace trapline
