// A connection to a database that nobody vouches for, and its statements.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "inputs/reader.hpp"
#include "inputs/sqlite/memory_file.hpp"

namespace trapline::inputs {

class Database {
 public:
  explicit Database(const MemoryFiles& files, const Sink& sink);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  bool is_open() const { return open_; }
  sqlite3* handle() const { return handle_; }
  // SQLite's own words for its last error.
  std::string problem() const;

 private:
  sqlite3* handle_ = nullptr;
  bool open_ = false;
};

class Statement {
 public:
  Statement(const Database& database, const std::string& text);
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // True: there is a row. False: the end, or failed().
  bool next();
  bool failed() const { return failed_; }

  int type(int column) { return sqlite3_column_type(handle_, column); }
  std::int64_t integer(int column) { return sqlite3_column_int64(handle_, column); }
  double number(int column) { return sqlite3_column_double(handle_, column); }
  std::string_view text(int column);  // of a text or of a blob; until the next row

 private:
  sqlite3_stmt* handle_ = nullptr;
  bool failed_ = false;
};

std::string quoted_name(std::string_view name);  // as it stands in SQL

}  // namespace trapline::inputs
