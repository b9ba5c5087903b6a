// Columns of JSON records by dotted key, as they turn up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inputs/json_stretch.hpp"
#include "inputs/json_text.hpp"

namespace trapline::inputs {

inline constexpr std::size_t kMaxJsonColumns = 1024;

class JsonRecords {
  using Key = JsonKey;

 public:
  // `below`: what the names of all columns begin with, "json" of "json.label".
  explicit JsonRecords(Sink& sink, std::string below = "") : sink_(sink) {
    root_.path = std::move(below);
    keys_.push_back(&root_);
  }

  // The numbers of one record: "label" of {"label": 3}, "a.b" of {"a": {"b": 3}}; lists of any depth are
  // flat. Empty: fine; else what is wrong with the record.
  std::string record(ondemand::document& document, std::int64_t row, std::int64_t line);
  void flush();
  // At the end of the records: keys that few of them lack are missing values there, in every row; those that
  // most lack are optional.
  void finish();
  // What read_stretch() needs. `changes` counts how often what it relies on became another.
  const JsonKey& root() const { return root_; }
  std::size_t keys() const { return keys_.size(); }
  bool full() const { return columns_ == kMaxJsonColumns; }
  std::uint64_t changes() const { return changes_; }
  // The records of one run that were taken, the first of which is `row` and lies in a stretch whose line 0 is
  // `line`. Runs come in their order.
  void taken(const JsonStretch& stretch, const JsonStretch::Run& run, std::int64_t row, std::int64_t line);
  // Everything that was offered is refused, and nothing new has come up for a while.
  bool wanted() const;

 private:
  Key& below(Key& key, std::string_view name);
  ValueColumn* column_of(Key& key);
  template <class T>
  simdjson::error_code value(T& value, Key& key, int depth);
  template <class T>
  simdjson::error_code number(T& value, Key& key);
  template <class T>
  bool special(T& value, Key& key);
  template <class T>
  simdjson::error_code other_kind(T& list_or_object, Key& key);
  void null(Key& key);
  void note_absent(Key& object, std::size_t fields);
  void tell_absent(Key& object);
  void text(Key& key, std::string_view raw);

  Sink& sink_;
  Key root_;
  std::vector<Key*> keys_;         // by id
  std::vector<std::size_t> next_;  // by id: the next of a stretch's cells
  std::size_t columns_ = 0;
  std::uint64_t changes_ = 0;
  std::int64_t row_ = 0, line_ = 0;
  std::string deep_;  // the path that was too deep
};

}  // namespace trapline::inputs
