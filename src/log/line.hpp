// The line: what the reader hands to the reasoner, and the sink that takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace trapline {

// One clean line of program output: the program's own words as plain text, whatever they went through. That
// is:
//  - valid UTF-8 without control characters, terminal escape sequences and zero-width characters (clean/text)
//  - no progress bar around text that was glued to it, nothing that a carriage return overwrote with it
//    (clean/progress)
//  - no prefix of a container, a journal, a launcher or a logger (clean/prefix); the message of a JSON line
//    instead of the line (clean/json_line); one line, where several stood with literal "\n" between them
//    (clean/literal_breaks)
//  - none of the damage of copying: HTML entities, full-width punctuation, Markdown, quotation marks of mail,
//    frames of boxes (clean/tidy)
// LineMaker (clean/line_maker) makes all of them, and nothing behind it cleans again. What the catalogue does
// to match a phrase (catalogue/fold) is a key made of a clean line; it forgives what cannot be undone: line
// breaks in mid word, letters that look alike, a lone "\n". All views live until LineSink::line() returns.
//
// A line of the file can become several Lines with the same number: a JSON message with line breaks, text
// with literal "\n", or a progress bar's carriage returns. Numbers rise within a source; a jump means that
// the lines in between were read and judged irrelevant.
struct Line {
  std::string_view text;
  std::string_view source;  // the file as shown to the user; "<stdin>" for standard input
  std::int64_t number = 0;  // 1-based, in the source
  int rank = -1;            // from the prefix, else the file name; -1: unknown
  std::string_view host;    // empty: unknown
  std::int64_t pid = -1;    // -1: unknown
  int progress = -1;        // percent done, by the last progress bar that was taken off; -1: none so far
  bool is_error = false;    // a logger's level before the text said so
  bool is_calm = false;     // such a level said that it is none: a warning, or less
  bool shortened = false;   // the line was too long: its middle was left out
};

// How a source ended.
struct SourceEnd {
  std::uint64_t bytes = 0;       // of text, after decompression
  std::int64_t lines = 0;        // line breaks seen, plus a last line without one
  std::int64_t shortened = 0;    // lines of which the middle was left out
  bool binary = false;           // not text: skipped
  bool unfinished = false;       // the last line has no line break: the log may be cut
  bool replaced = false;         // bytes that are no valid text were replaced
  std::optional<Error> problem;  // why it ended before its end: a truncated or broken archive, a read error
};

class LineSink {
 public:
  virtual ~LineSink() = default;
  virtual void line(const Line& line) = 0;
  virtual void end_of_source(std::string_view source, const SourceEnd& end) = 0;
  // A live input has delivered lines and nothing came after them for a moment: a good time to show what is
  // known.
  virtual void quiet() {}
};

}  // namespace trapline
