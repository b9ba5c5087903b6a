// From the bytes of one line to plain text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trapline {

// Bytes that belong to no valid UTF-8 sequence; a sequence cut by the end of `bytes` does not count.
std::size_t count_invalid_utf8(std::string_view bytes);

// Appends the UTF-8 form; U+FFFD when `code` is not a character.
void append_utf8(std::string& text, std::uint32_t code);

// Without terminal escape sequences, NUL bytes, backspaces and what they erased, zero-width characters, soft
// hyphens and a final "^M"; no-break spaces are spaces; bytes that are not UTF-8 are U+FFFD (and `replaced`
// is set). Carriage returns stay. The result is `raw` itself when there is nothing to do, else lives in
// `scratch`.
std::string_view clean_text(std::string_view raw, std::string& scratch, bool& replaced);

// Text without blanks at both ends.
std::string_view trim(std::string_view text);

// Blanks that were doubled or padded are one: rules look for words.
std::string single_spaced(std::string_view text);

}  // namespace trapline
