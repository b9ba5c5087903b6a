// Files that are parts of one table: what is found in a column of them is told once, with the numbers of the
// whole.
#pragma once

#include <optional>
#include <vector>

#include "check/files.hpp"

namespace trapline::check {

struct WholeColumn {
  const FileResult* file = nullptr;      // the first that has it
  const ColumnResult* column = nullptr;  // and what was seen there
  std::optional<ColumnResult> merged{};  // of several files; without its texts
  bool closely = true;                   // each of them was looked at closely

  const ColumnResult& whole() const { return merged ? *merged : *column; }
};

// In the order of the files.
std::vector<WholeColumn> whole_columns(const std::vector<FileResult>& results);

}  // namespace trapline::check
