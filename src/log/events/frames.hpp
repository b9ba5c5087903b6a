// Tracebacks as people paste them: Python's own, IPython and Colab cells, rich boxes, loguru, frames retold
// in prose, Lua; without their header, cut at either end, wrapped in mid word, or torn by other threads.
#pragma once

#include <re2/stringpiece.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "log/events/event.hpp"

namespace trapline {

class FrameParser {
 public:
  // One line, in order. Lines that belong to no traceback cost little.
  void line(std::string_view text, std::int64_t number, bool is_calm = false);

  const std::vector<Traceback>& tracebacks() const { return tracebacks_; }
  std::vector<Traceback> take() { return std::move(tracebacks_); }
  // The traceback that the latest line belongs to or has just closed; -1: none.
  int current() const { return current_; }
  // The exception that the latest line names.
  bool closed_now() const { return closed_now_; }
  std::string_view exception() const { return exception_; }
  std::string_view message() const { return message_; }

 private:
  void open(std::int64_t number);
  void add(std::string_view file, std::int64_t line, std::string_view function, FrameStyle style,
           std::int64_t number, std::string_view prefix);
  bool python_frames(std::string_view text, std::int64_t number);
  bool notebook_frame(std::string_view text, std::int64_t number);
  bool box_frame(std::string_view text, std::int64_t number);
  bool other_frame(std::string_view text, std::int64_t number);
  bool code_line(std::string_view text);
  // Whether the line closes the open traceback by an exception whose name does not tell that it is one.
  bool ends_traceback(std::string_view text, std::int64_t number, re2::StringPiece& full,
                      re2::StringPiece& name, re2::StringPiece& message) const;
  void exception_line(std::string_view text, std::int64_t number);
  std::string_view without_prefix(std::string_view text) const;

  std::vector<Traceback> tracebacks_;
  int current_ = -1;
  bool calm_ = false;
  bool wants_code_ = false;  // the next line may be the source line of the last frame
  bool closed_now_ = false;
  std::string prefix_;   // what a logger put before the last frame
  std::string partial_;  // a frame's line that was broken in mid word
  std::string exception_, message_;
  std::int64_t last_frame_ = 0;
};

// Whether a file belongs to the user: not to an installed package, the standard library or an interpreter.
bool is_user_file(std::string_view file);

}  // namespace trapline
