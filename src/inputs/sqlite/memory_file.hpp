// A database in memory as a file of SQLite: it sees this database and its log, can write to neither, and
// knows no other file. Nothing that a database says makes SQLite open anything.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <span>
#include <string>

namespace trapline::inputs {

class MemoryFiles {
 public:
  // The bytes must outlive this object, and this object the connections.
  MemoryFiles(std::span<const std::byte> database, std::span<const std::byte> log);
  ~MemoryFiles();
  MemoryFiles(const MemoryFiles&) = delete;
  MemoryFiles& operator=(const MemoryFiles&) = delete;

  // For sqlite3_open_v2(); null: SQLite has no room for it.
  const char* name() const { return registered_ ? name_.c_str() : nullptr; }
  std::span<const std::byte> database() const { return database_; }
  std::span<const std::byte> log() const { return log_; }

 private:
  std::span<const std::byte> database_, log_;
  std::string name_;
  sqlite3_vfs vfs_{};
  bool registered_ = false;
};

}  // namespace trapline::inputs
