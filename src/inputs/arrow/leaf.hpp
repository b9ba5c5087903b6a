// The columns of numbers in an Arrow schema: a leaf per number under structs and lists.
#pragma once

#include <arrow/api.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "inputs/elements.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

struct Leaf {
  int field = 0;                    // of the schema
  std::vector<int> below;           // which field of each struct on the way down; lists have just one below
  std::string name;                 // "label", "boxes.x"
  Encoding encoding;                // of its numbers; a dictionary's values
  bool text = false;                // no numbers: texts, at the top or in a dictionary there
  bool bits = false;                // boolean: eight to a byte
  std::vector<std::int64_t> fixed;  // sizes of the fixed-size lists on the way down
  bool lists = false;               // there are lists on the way down
  bool ragged = false;              // there are lists of other sizes or structs, too
};

struct Leaves {
  std::vector<Leaf> leaves;
  std::vector<std::pair<std::string, std::string>> skipped;  // name, why
};

Leaves leaves_of(const arrow::Schema& schema);

// What an extension type (a tensor, a JSON text) is stored as.
std::shared_ptr<arrow::DataType> storage_of(std::shared_ptr<arrow::DataType> type);

}  // namespace trapline::inputs
