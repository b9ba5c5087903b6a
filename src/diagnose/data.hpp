// Facts of data at rest, as `trapline check` reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"

namespace trapline::diagnose {

// Where a value stands in a file.
struct RecordPlace {
  std::string source;               // the file; empty: the data is no file, and the place is not told
  std::int64_t line = 0;            // of a text file, from 1; 0: none
  std::vector<std::int64_t> index;  // row first
  std::int64_t rows_before = 0;     // in the files before that one
};

// A label in the range of the classes, and none of those that the data set names.
struct UnnamedClass {
  std::string column;
  RecordPlace first;
  std::int64_t label = 0, bad = 0, total = 0;
  std::vector<std::int64_t> ids;  // of the classes, ascending
};

// More classes, written as text, than the model has.
struct TextLabels {
  std::string column;
  std::vector<std::string> names;  // in the order in which they came
  std::int64_t limit = 0;
  RecordPlace first;  // of names[limit]
};

// Text and fractions where numbers belong.
struct NotIntegers {
  std::string column;
  bool labels = false;   // else ids
  bool numbers = false;  // floating point numbers are meant: text alone is wrong
  RecordPlace first;
  std::string text;  // of the first: "cat", "0.5", ""
  std::int64_t bad = 0, total = 0;
};

// No value where one belongs: an empty field, null, "NA", "nan".
struct MissingValues {
  std::string column;
  bool numbers = false;  // floating point numbers, of which a program makes NaN; else class labels or ids
  RecordPlace first;
  std::string text;  // of the first: "", "NA"
  std::int64_t bad = 0, total = 0;
};

// A tree of pictures whose classes are not what they seem: a folder per class, numbered in the order of
// names.
struct ClassFolders {
  std::string source;  // the tree
  std::string column;
  // Other classes in one split than in the first: folder, and its classes in their order.
  std::string first, other;
  std::vector<std::string> first_names, other_names;
  // Or a class without a picture.
  std::string empty;
  // Or a class that some program left: its hidden folder, and its number.
  std::string hidden;
  std::int64_t label = 0;
};

// Rows of ids that are longer than the position table.
struct LongRows {
  std::string column;
  TensorInfo tensor;
  RecordPlace first;
  std::int64_t bad = 0, total = 0, longest = 0;
  std::int64_t positions = 0;
  std::optional<Layer> layer;  // the table
};

// "label[3] is 195", at its place; nothing where the place has no file.
void add_place(const RecordPlace& place, const std::string& text, Finding& finding);
// "label[3]"; "label" without a position.
std::string element_text(const std::string& column, const std::vector<std::int64_t>& index);

}  // namespace trapline::diagnose
