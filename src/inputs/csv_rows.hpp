// Rows of delimited text (RFC 4180 and what spreadsheets make of it), straight from the memory map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trapline::inputs {

class CsvRows {
 public:
  // `start`: where its first row begins.
  CsvRows(std::string_view text, char delimiter, std::size_t start = 0)
      : text_(text), delimiter_(delimiter), next_(start), row_(start) {}

  // The fields of the next row; only the first `most` of them. Blank lines are no rows. False: the end, or
  // problem() says what is wrong. The fields live until the next call.
  bool next(std::vector<std::string_view>& fields, std::size_t most);

  std::int64_t line() const { return row_line_; }   // of the row's first character, 1-based
  std::size_t offset() const { return row_; }       // of the row's first character
  std::size_t position() const { return next_; }    // where the next row begins
  std::int64_t lines() const { return line_ - 1; }  // before position(), from the start on
  std::string_view problem() const { return problem_; }
  std::size_t problem_offset() const { return problem_offset_; }

 private:
  bool quoted_row(std::vector<std::string_view>& fields, std::size_t most);

  std::string_view text_;
  char delimiter_;
  std::size_t next_, row_;
  std::int64_t line_ = 1, row_line_ = 1;
  // Fields with doubled quotes, which cannot stay where they are; the strings' buffers are used again.
  std::vector<std::string> unquoted_;
  std::size_t unquoted_used_ = 0;
  std::string_view problem_;
  std::size_t problem_offset_ = 0;
};

}  // namespace trapline::inputs
