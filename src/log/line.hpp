// The line: what the reader hands to the reasoner, and the sink that takes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trapline {

// One line of program output, cleaned: valid UTF-8, no escape sequences, no progress bar around text that was
// glued to it, no prefix of a container, a journal or a launcher. All views live until LineSink::line()
// returns.
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
  bool shortened = false;   // the line was too long: its middle was left out
};

// How a source ended.
struct SourceEnd {
  std::uint64_t bytes = 0;     // of text, after decompression
  std::int64_t lines = 0;      // line breaks seen, plus a last line without one
  std::int64_t shortened = 0;  // lines of which the middle was left out
  bool binary = false;         // not text: skipped
  bool damaged = false;        // ended before its end: truncated or broken archive, read error
  bool unfinished = false;     // the last line has no line break: the log may be cut
  bool replaced = false;       // bytes that are no valid text were replaced
  std::string problem;         // "what: why: what to do" when damaged, empty otherwise
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
