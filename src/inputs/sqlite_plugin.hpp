// Between the SQLite reader and libtrapline_sqlite.so, which is loaded at the first database.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/result.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

struct SqliteFile {
  std::string path;
  std::span<const std::byte> bytes;
  std::span<const std::byte> log;  // its write-ahead log, "-wal"; empty: there is none
};

// `problem` stays empty: read, or stopped by the sink. Tables that are sound are read whatever the others
// are.
using SqliteRead = void (*)(const SqliteFile& file, Sink& sink, std::optional<Error>& problem);
inline constexpr char kSqliteReadName[] = "trapline_sqlite_read";  // its type is SqliteRead

}  // namespace trapline::inputs
