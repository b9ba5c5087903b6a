// Assertions out of what is left of their lines: whole ones, ones that were wrapped, torn by other threads'
// output, or of which only some names and the condition are legible.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/events/assert_line.hpp"
#include "log/events/message_matcher.hpp"

namespace trapline {

struct FoundAssert {
  AssertLine line;
  std::string_view text;                 // that shows it
  const AssertRow* condition = nullptr;  // of the catalogue, that stands in the text
  bool in_pieces = false;                // put together of several lines
  bool end_missing = false;              // counts only when no other assertion is legible
};

class AssertAssembler {
 public:
  // One clean line, and what the catalogue knows of it. Usually returns nothing or one; what is returned
  // lives until the next call, or as long as `text`.
  std::span<const FoundAssert> line(std::string_view text, std::int64_t number, const LineMatches& matches);
  // Whether the latest line is (the end of) one of the assertions that it returned.
  bool took_line() const { return took_line_; }
  // Nothing more will come: what was begun.
  std::span<const FoundAssert> finish();

 private:
  struct Site {  // the last place in a CUDA source that was named
    std::string file, kernel;
    std::int64_t line = 0;
    std::int64_t at = -1;  // in folded characters; -1: none
    bool block = false;    // a block and a thread were named after it
  };

  void note(const AssertPart& part);
  void give_up_site();
  bool finish_open(std::string_view text, std::int64_t number, const AssertRow* condition);
  void drop_open();
  // False when the line is another failure's: its condition stands for nothing.
  bool read_line(std::string_view text, std::int64_t number, const LineMatches& matches);
  void read_condition(std::string_view text, const LineMatches& matches);
  void emit_condition(std::string_view text, const AssertRow& condition);
  void emit(const FoundAssert& found);
  std::string_view keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  Site site_;
  std::int64_t block_at_ = -1, place_at_ = -1;  // folded characters: "block", "block ... thread"
  std::string before_text_;  // the end of the line before, if it was long enough to be wrapped
  std::int64_t before_number_ = 0;
  std::string open_text_;         // an assertion without its end ...
  std::int64_t open_number_ = 0;  // ... up to this line
  std::string cut_text_;          // one whose end never came
  bool took_line_ = false;
  std::vector<FoundAssert> found_;
  std::deque<std::string> kept_;  // what found_ points to
};

}  // namespace trapline
