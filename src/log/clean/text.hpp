// Makes text of the bytes of one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// Bytes that belong to no valid UTF-8 sequence; a sequence cut by the end of `bytes` does not count.
std::size_t count_invalid_utf8(std::string_view bytes);

// Without terminal escape sequences, NUL bytes, backspaces and what they erased, zero-width characters, soft
// hyphens and a final "^M"; no-break spaces are spaces; bytes that are no UTF-8 are U+FFFD (and `replaced` is
// set). Carriage returns stay. The result is `raw` itself when there is nothing to do, else lives in
// `scratch`.
std::string_view clean_text(std::string_view raw, std::string& scratch, bool& replaced);

// Whether a segment that a carriage return overwrote held nothing but a progress bar.
bool is_progress_bar(std::string_view segment);

// `segment` without a progress bar at its start, when text was glued to it; else `segment`.
std::string_view without_progress_bar(std::string_view segment);

// How far the last bar in `text` says the program is, in percent; -1 without a bar. A bar without a total
// says 0 until its first step is done, then nothing.
int progress_in(std::string_view text);

// What a line of JSON says: its message, the texts of its exception, and who said it.
struct JsonLine {
  std::string text;  // with real line breaks
  std::int64_t rank = -1;
  std::int64_t pid = -1;
  std::string host;
};

// False when `line` is no JSON object, or one without a message.
bool read_json_line(std::string_view line, JsonLine& out);

// Appends the text of a JSON string's inside (without its quotes), lenient: a broken escape stays as it is.
void unescape_json(std::string_view inside, std::string& out);

// Parts of a line in which line breaks were written as \n, in order; `scratch` holds what had to be
// unescaped. One part, the line itself, when it has none. Windows paths (C:\new) and Python source ("a\nb")
// are left alone.
void split_literal_newlines(std::string_view line, std::string& scratch,
                            std::vector<std::string_view>& parts);

}  // namespace trapline
