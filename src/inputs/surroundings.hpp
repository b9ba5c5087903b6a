// What stands around a table and not in it: columns in the names of its folders (Hive's partitions), and the
// classes that a Hugging Face data set names beside it.
#pragma once

#include "inputs/reader.hpp"

namespace trapline::inputs {

// The reader's read(), and with it:
// - a column of one value for each part "name=value" of the path, as pyarrow.dataset, Spark and DuckDB write
//   them, unless the table has one of that name; its rows lie in that folder. Values are percent-encoded;
//   __HIVE_DEFAULT_PARTITION__ is a missing one;
// - class names from the "features" of a dataset_info.json in the table's folder or the two above it.
Result<bool> read_with_surroundings(const Reader& reader, const Source& source, Sink& sink);

}  // namespace trapline::inputs
