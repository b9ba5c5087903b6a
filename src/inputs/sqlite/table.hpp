// One table of a database, row by row.
#pragma once

#include <cstdint>
#include <string>

#include "inputs/reader.hpp"
#include "inputs/sqlite/statement.hpp"

namespace trapline::inputs {

// How much a sound database of this size may still hold. A damaged one whose pages lead in a circle would
// give rows for ever.
struct Budget {
  std::int64_t rows = 0;
  std::int64_t text = 0;  // bytes
};

enum class TableRead : std::uint8_t { kDone, kFailed, kCircle };

// `prefix`: before the columns' names. kFailed: database.problem() says why; or the sink has stopped.
TableRead read_table(const Database& database, const std::string& table, const std::string& prefix,
                     Sink& sink, Budget& budget);

}  // namespace trapline::inputs
