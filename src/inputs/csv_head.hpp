// What stands above the numbers of a table of text: the names of its columns, and whatever is there besides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inputs/csv_rows.hpp"

namespace trapline::inputs {

// No number in it: the first row of a table that is like this is its header.
bool is_header(const std::vector<std::string_view>& fields);

struct CsvHead {
  std::vector<std::string> names;
  CsvRows below;  // where the values begin
};

// `rows`: at the header. Rows of units, of second names and of words above the names are skipped.
// `orange`: the file may be one of Orange's.
CsvHead read_head(CsvRows rows, bool orange);

}  // namespace trapline::inputs
