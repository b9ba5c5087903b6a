// Columns of JSON records by dotted key, as they turn up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inputs/json_text.hpp"
#include "inputs/value_column.hpp"

namespace trapline::inputs {

inline constexpr std::size_t kMaxJsonColumns = 1024;

class JsonRecords {
 public:
  // `below`: what the names of all columns begin with, "json" of "json.label".
  explicit JsonRecords(Sink& sink, std::string below = "") : sink_(sink) { root_.path = std::move(below); }

  // The numbers of one record: "label" of {"label": 3}, "a.b" of {"a": {"b": 3}}; lists of any depth are
  // flat. Empty: fine; else what is wrong with the record.
  std::string record(ondemand::document& document, std::int64_t row, std::int64_t line);
  void flush();
  // At the end of the records: keys that few of them lack are missing values there, in every row; those that
  // most lack are optional.
  void finish();
  // Everything that was offered is refused, and nothing new has come up for a while.
  bool wanted() const;

 private:
  struct Key {
    std::string name;  // the last part of the path
    std::string path;
    std::vector<std::unique_ptr<Key>> below;
    std::size_t guess = 0;  // where in `below` the next key of a record probably is
    std::unique_ptr<ValueColumn> column;
    std::unique_ptr<ValueColumn> texts;  // where its values are texts
    bool told = false;                   // skipped() was called, or begin_text()
    bool lists = false;                  // a record had a list of it
    // Rows before the first value, with their lines.
    std::vector<std::pair<std::int64_t, std::int64_t>> nulls{};
    std::uint64_t objects = 0;                      // with keys below this one
    std::pair<std::int64_t, std::int64_t> began{};  // row and line of the first of them
    std::uint64_t seen = 0;                         // objects around this key that have it
    std::uint64_t latest = 0;                       // the number of the last one that has it
    // The first rows without the key, with their lines.
    std::vector<std::pair<std::int64_t, std::int64_t>> absent{};
  };

  Key& below(Key& key, std::string_view name);
  ValueColumn* column_of(Key& key);
  template <class T>
  simdjson::error_code value(T& value, Key& key, int depth);
  template <class T>
  simdjson::error_code number(T& value, Key& key);
  template <class T>
  bool special(T& value, Key& key);
  // A column of single numbers.
  static bool is_number(const Key& key) { return key.column != nullptr && !key.lists && !key.name.empty(); }
  template <class T>
  simdjson::error_code other_kind(T& list_or_object, Key& key);
  void null(Key& key);
  void note_absent(Key& object, std::size_t fields);
  void tell_absent(Key& object);
  void text(Key& key, std::string_view raw);

  Sink& sink_;
  Key root_;
  std::size_t columns_ = 0;
  std::int64_t row_ = 0, line_ = 0;
  std::string deep_;  // the path that was too deep
};

}  // namespace trapline::inputs
