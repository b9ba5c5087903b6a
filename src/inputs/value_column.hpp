// Numbers of one column as a text format finds them, collected into pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "inputs/reader.hpp"

namespace trapline::inputs {

// Reads a number as tables and people write it: "7", "+7", " -1.5e3 ", "nan", "inf", "True".
struct Number {
  enum class Kind : std::uint8_t { kInteger, kFloat, kMissing, kText };
  Kind kind = Kind::kText;
  std::int64_t integer = 0;
  double number = 0;
  bool huge = false;  // a whole number that int64 cannot hold, rounded
};
Number number_of(std::string_view text);

class ValueColumn {
 public:
  // `most`: values held before a piece goes out.
  ValueColumn(Sink& sink, Column column, std::size_t most);
  ValueColumn(ValueColumn&&) = default;

  // The sink's begin(); false: add() and the like do nothing.
  bool begin() { return wanted_ = column_.text ? sink_->begin_text(column_) : sink_->begin(column_); }
  bool wanted() const { return wanted_; }
  const Column& column() const { return column_; }

  // Rows come in ascending order; a row may have several values or none. `line` is 0 where there are no
  // lines.
  void add(std::int64_t row, std::int64_t line, std::int64_t value) {
    if (!make_room(row, line)) return;
    if (floats_) {
      numbers_.push_back(static_cast<double>(value));
    } else {
      integers_.push_back(value);
    }
  }
  void add(std::int64_t row, std::int64_t line, double value);
  void add(std::int64_t row, std::int64_t line, const Number& number, std::string_view text);
  // From now on rows hold lists of values.
  void has_lists() { lists_ = true; }
  void malformed(std::int64_t row, std::int64_t line, std::string_view text);
  // The rows from `first_row` on lie in `path`.
  void in_file(std::string_view path, std::int64_t first_row);
  // Hands over what is held. Called at the end, too.
  bool flush();

 private:
  std::size_t count() const { return floats_ ? numbers_.size() : integers_.size(); }
  // False: not wanted. Otherwise the value may be pushed.
  bool make_room(std::int64_t row, std::int64_t line) {
    if (!wanted_) return false;
    const auto held = static_cast<std::int64_t>(count());
    if (held > 0 && held < most_ && rows_.empty() && row == first_row_ + held &&
        line == (first_line_ == 0 ? 0 : first_line_ + held)) {
      return true;
    }
    return make_room_slowly(row, line);
  }
  bool make_room_slowly(std::int64_t row, std::int64_t line);

  Sink* sink_;
  Column column_;
  std::int64_t most_;
  std::vector<std::int64_t> integers_;
  std::vector<double> numbers_;
  std::vector<std::int64_t> rows_;  // of each value; empty while value i is of row first_row_ + i
  std::int64_t first_row_ = 0, first_line_ = 0;
  bool floats_ = false, lists_ = false;
  bool wanted_ = false;
};

}  // namespace trapline::inputs
