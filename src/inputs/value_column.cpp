#include "inputs/value_column.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <utility>

namespace trapline::inputs {
namespace {

// What tables write for "no value": the words of pandas (pandas/_libs/parsers.pyx, STR_NA_VALUES), but for
// those that are numbers elsewhere, and what Python's str makes of NaT.
constexpr std::string_view kMissing[] = {"",     "NA",   "N/A",  "n/a",  "#N/A", "#NA", "#N/A N/A",
                                         "null", "NULL", "None", "<NA>", "NaT",  "nan", "NaN",
                                         "NAN",  "-nan", "-NaN", "nil",  "."};  // as SAS, Stata and the FRED
                                                                                // database write it

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_missing(std::string_view text) {
  return std::find(std::begin(kMissing), std::end(kMissing), trimmed(text)) != std::end(kMissing);
}

Number number_of(std::string_view text) {
  Number result;
  text = trimmed(text);
  if (is_missing(text)) {
    result.kind = Number::Kind::kMissing;
    return result;
  }
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (*begin == '+' && text.size() > 1 && begin[1] != '-') ++begin;
  const auto whole = std::from_chars(begin, end, result.integer);
  if (whole.ptr == end && whole.ec == std::errc()) {
    result.kind = Number::Kind::kInteger;
    return result;
  }
  result.huge = whole.ptr == end;
  const auto real = std::from_chars(begin, end, result.number);
  if (real.ptr == end && real.ec == std::errc()) {
    result.kind = Number::Kind::kFloat;
  } else if (real.ptr == end && real.ec == std::errc::result_out_of_range) {
    // from_chars does not say which way. Zero is right for "1e-999" and infinity for what has no such
    // exponent.
    const bool tiny = text.find("e-") != text.npos || text.find("E-") != text.npos;
    result.number = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    if (*begin == '-') result.number = -result.number;
    result.kind = Number::Kind::kFloat;
  } else if (text == "True" || text == "true" || text == "TRUE") {
    result = {Number::Kind::kInteger, 1, 0};
  } else if (text == "False" || text == "false" || text == "FALSE") {
    result = {Number::Kind::kInteger, 0, 0};
  }
  return result;
}

ValueColumn::ValueColumn(Sink& sink, Column column, std::size_t most)
    : sink_(&sink), column_(std::move(column)), most_(static_cast<std::int64_t>(most)) {
  floats_ = is_floating(column_.dtype);
}

void ValueColumn::add(std::int64_t row, std::int64_t line, double value) {
  if (!floats_) {
    flush();
    floats_ = true;
  }
  if (make_room(row, line)) numbers_.push_back(value);
}

void ValueColumn::add(std::int64_t row, std::int64_t line, const Number& number, std::string_view text) {
  if (column_.text) return malformed(row, line, text);
  switch (number.kind) {
    case Number::Kind::kInteger:
      return add(row, line, number.integer);
    case Number::Kind::kFloat:
      // An integer beyond int64 would be another one as a float.
      if (number.huge && !floats_) return malformed(row, line, text);
      return add(row, line, number.number);
    case Number::Kind::kMissing:
    case Number::Kind::kText:
      return malformed(row, line, text);
  }
}

void ValueColumn::malformed(std::int64_t row, std::int64_t line, std::string_view text) {
  if (!wanted_) return;
  if (column_.text) {
    wanted_ = sink_->text(column_, row, line, text);
  } else {
    sink_->malformed(column_, row, line, text);
  }
}

void ValueColumn::in_file(std::string_view path, std::int64_t first_row) {
  flush();
  if (wanted_) sink_->file(column_, path, first_row);
}

bool ValueColumn::make_room_slowly(std::int64_t row, std::int64_t line) {
  const auto held = static_cast<std::int64_t>(count());
  if (held >= most_ || (held > 0 && line != 0 && line != first_line_ + (row - first_row_))) {
    if (!flush()) return false;
  }
  const auto kept = static_cast<std::int64_t>(count());
  if (kept == 0) {
    first_row_ = row;
    first_line_ = line;
    return true;
  }
  if (rows_.empty() && row == first_row_ + kept) return true;
  if (rows_.empty()) {
    rows_.resize(static_cast<std::size_t>(kept));
    std::iota(rows_.begin(), rows_.end(), first_row_);
  }
  rows_.push_back(row);
  return true;
}

bool ValueColumn::flush() {
  const auto held = static_cast<std::int64_t>(count());
  if (held == 0 || !wanted_) return wanted_;
  const std::array<std::int64_t, 1> sizes{held};
  constexpr std::array<std::int64_t, 1> kStrides{1};
  Piece piece;
  piece.column = &column_;
  const void* data = numbers_.data();
  if (!floats_) data = integers_.data();
  piece.view = {data, floats_ ? DType::kFloat64 : DType::kInt64, sizes, kStrides};
  piece.first_row = first_row_;
  piece.row_of = rows_;
  piece.scalars = !lists_;
  piece.first_line = first_line_;
  wanted_ = sink_->piece(piece);
  integers_.clear();
  numbers_.clear();
  rows_.clear();
  return wanted_;
}

}  // namespace trapline::inputs
