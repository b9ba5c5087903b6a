// What is known of one key of JSON records: where it stands, what it held so far, and the column that this
// makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "inputs/value_column.hpp"

namespace trapline::inputs {

struct JsonKey {
  static constexpr std::size_t kMaxNulls = 64;  // places that are remembered

  std::string name;    // the last part of the path
  std::string path;    // with dots
  std::size_t id = 0;  // in the order in which they came
  bool plain = true;   // the name stands in quotes as it is
  bool ascii = true;
  std::vector<std::unique_ptr<JsonKey>> below{};
  std::size_t guess = 0;  // where in `below` the next key of a record probably is
  std::unique_ptr<ValueColumn> column{};
  std::unique_ptr<ValueColumn> texts{};  // where its values are texts
  bool told = false;                     // skipped() was called, or begin_text()
  bool lists = false;                    // a record had a list of it
  // Rows before the first value, with their lines.
  std::vector<std::pair<std::int64_t, std::int64_t>> nulls{};
  std::uint64_t objects = 0;                      // with keys below this one
  std::pair<std::int64_t, std::int64_t> began{};  // row and line of the first of them
  std::uint64_t seen = 0;                         // objects around this key that have it
  std::uint64_t latest = 0;                       // the number of the last one that has it
  // The first rows without the key, with their lines.
  std::vector<std::pair<std::int64_t, std::int64_t>> absent{};

  // A column of single numbers.
  bool is_number() const { return column != nullptr && !lists && !name.empty(); }
  // A record without it is remembered.
  bool counts_absent() const { return absent.size() < kMaxNulls && (column != nullptr || !nulls.empty()); }
};

}  // namespace trapline::inputs
