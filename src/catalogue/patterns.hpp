// Messages that no fixed phrase finds: a status given by its number, a text so short that it counts only in a
// line that speaks of its library, what shells and launchers say of a dead process, and a GPU's trouble in
// words that nobody wrote down.
//
// To teach Trapline another one, add its row to patterns*.def or numbers.def.
#pragma once

#include <span>
#include <string_view>

#include "catalogue/statuses.hpp"
#include "catalogue/wordings.hpp"

namespace trapline {

struct PatternRow {
  WordingRow wording;  // its phrase is empty
  std::string_view pattern;
};

struct NumberForm {
  Library library;
  std::string_view pattern;  // its one group is the number, also in hexadecimal with 0x
  std::string_view sample;
};

std::span<const PatternRow> pattern_rows();

// Of a line of which no more is known than that its logger calls it an error.
const WordingRow& error_line();
std::span<const NumberForm> number_forms();

// Whether the text has a word of GPUs or their software; names of environment variables are none.
bool speaks_of_gpu(std::string_view text);

// Whether the line is an assertion of a call's status, "Assertion 'err == cudaSuccess' failed": the status is
// what failed, not a kernel's condition.
bool checks_status(std::string_view line);

// Whether a line that has a word of failure tells of none: a program that goes on, a count of nothing, a
// measured error, source code.
bool is_harmless(std::string_view line);

// What the line says of a failure; nullptr: nothing. To be asked for lines in which no phrase names a
// failure.
const WordingRow* find_pattern(std::string_view line);

}  // namespace trapline
