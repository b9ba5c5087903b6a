// UTF-8 from programs that Trapline does not control: validate, escape, measure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trapline {

struct CodePoint {
  char32_t value = 0;      // U+FFFD for a byte that is not UTF-8
  std::size_t length = 1;  // bytes it takes in the text
  bool valid = true;
};

// Decodes the code point at `position`, which must be below text.size(). Overlong forms, surrogates and
// values beyond U+10FFFF are invalid, one byte at a time, as Unicode recommends.
CodePoint decode_utf8(std::string_view text, std::size_t position);

void append_utf8(std::string& text, char32_t code_point);

// Every invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// Columns on a terminal: 0 for combining characters, 2 for East Asian wide ones and emoji, else 1.
int width_of(char32_t code_point);

// Columns of a text; tabs and control characters count 1 (escape or expand them before).
int width_of(std::string_view text);

// Text that is safe to send to a terminal: valid UTF-8 in which control characters, escape sequences, line
// breaks and bidirectional overrides are written out (\n, \x1b, \u202e). Tabs become single spaces.
std::string printable(std::string_view text);

// The same with each character that is not ASCII written out or replaced by a look-alike, for terminals
// whose locale is not UTF-8.
std::string ascii(std::string_view text);

// At most `bytes` bytes, cut between characters.
std::string_view cut_utf8(std::string_view text, std::size_t bytes);

}  // namespace trapline
