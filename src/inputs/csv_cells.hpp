// Stretches of delimited text to numbers, several at a time: where a row begins cannot be known without
// reading all that stands before it (a newline may be quoted), so it is guessed, and a stretch counts when
// the one before it ended where it began.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inputs/value_column.hpp"

namespace trapline::inputs {

struct CsvStretch {
  struct Cells {  // of one column, one per row
    std::vector<Number::Kind> kinds;
    std::vector<std::uint64_t> bits;  // of the integer or the number
    std::vector<std::string> texts;   // of those that are neither, and of `huge`, in their order
    std::vector<std::size_t> huge;    // cells that hold a whole number beyond int64
  };
  std::size_t begin = 0, end = 0;     // end: where the next row begins
  std::int64_t lines = 0;             // newlines in it
  std::vector<std::int64_t> line_of;  // of each row, from the stretch's own line 0
  std::vector<Cells> columns;
  std::string_view problem;
  std::size_t problem_offset = 0;
};

// Rows from `stretch.begin` to the first that begins at or behind `until`. `wanted`: positions of fields,
// ascending.
void read_stretch(std::string_view text, char delimiter, std::span<const std::size_t> wanted,
                  std::size_t until, CsvStretch& stretch);

// Where a row may begin, at or behind `near`, if one begins at `from`; the text's size when none is in sight.
std::size_t guess_row(std::string_view text, std::size_t from, std::size_t near);

// Hands the cells over, until the sink is stopped; `first_row` and `first_line` are those of the stretch.
void deliver(const CsvStretch& stretch, std::int64_t first_row, std::int64_t first_line,
             std::span<ValueColumn> columns, const Sink& sink);

}  // namespace trapline::inputs
