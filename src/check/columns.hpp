// What the columns of a source are, decided by evidence: name, dtype, values, neighbours. The words of names
// are in columns.def; a name alone decides nothing that the values speak against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor_view.hpp"

namespace trapline::check {

enum class Role : std::uint8_t {
  kLabels,   // class numbers
  kIds,      // token ids: rows of an embedding table
  kNumbers,  // floating point numbers
  kMask,     // which places count; -inf is as good there as 0
  kOther,    // keys, positions, coordinates, integers that nothing tells about
  kText,     // text, or too much of it among the numbers
};

// What the first rows of a column show.
struct Evidence {
  std::string name;  // empty: the source holds just one column
  DType dtype = DType::kInt64;
  std::size_t dims = 1;  // of the column with its rows; 1: a value per row, or lists
  bool lists = false;    // rows hold several values or none
  bool classes = false;  // the source itself names its classes
  bool text = false;     // its rows are texts: `texts` of them, `distinct` different ones
  std::int64_t seen = 0, fractions = 0, negative = 0;  // finite numbers; -1 and -100 are marks, not negative
  std::int64_t texts = 0;                              // beside the numbers
  std::size_t distinct = 0;
};

// A column of text that its name allows to be classes.
bool may_be_text_labels(std::string_view name);

// Its name calls it a label; others are only guessed to be one.
bool says_label(std::string_view name);
// Its name calls it a label or a class.
bool says_class(std::string_view name);

// A role for each column of one source.
std::vector<Role> roles_of(std::span<const Evidence> columns);

}  // namespace trapline::check
