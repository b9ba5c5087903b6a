#include "inputs/csv_cells.hpp"

#include <algorithm>
#include <bit>

#include "inputs/csv_rows.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kRowsBetweenAsking = 16384;
constexpr std::size_t kGuessWithin = std::size_t{1} << 20U;

// What nearly all cells are; everything else is number_of()'s.
bool plain_integer(std::string_view field, std::int64_t& value) {
  const bool negative = field.starts_with('-');
  if (negative) field.remove_prefix(1);
  if (field.empty() || field.size() > 18) return false;
  std::int64_t sum = 0;
  for (const char c : field) {
    if (c < '0' || c > '9') return false;
    sum = sum * 10 + (c - '0');
  }
  value = negative ? -sum : sum;
  return true;
}

void add_cell(std::string_view field, CsvStretch::Cells& cells) {
  std::int64_t plain = 0;
  Number number;
  if (plain_integer(field, plain)) {
    number = {Number::Kind::kInteger, plain, 0};
  } else {
    number = number_of(field);
  }
  // A whole number that int64 cannot hold keeps its digits, as text: which of the two a column wants is known
  // where it is delivered.
  if (number.huge) {
    cells.huge.push_back(cells.kinds.size());
    cells.texts.emplace_back(field);
  }
  cells.kinds.push_back(number.kind);
  const bool floats = number.kind == Number::Kind::kFloat;
  cells.bits.push_back(
      std::bit_cast<std::uint64_t>(floats ? std::bit_cast<std::int64_t>(number.number) : number.integer));
  if (number.kind == Number::Kind::kMissing || number.kind == Number::Kind::kText)
    cells.texts.emplace_back(field);
}

}  // namespace

void read_stretch(std::string_view text, char delimiter, std::span<const std::size_t> wanted,
                  std::size_t until, CsvStretch& stretch) {
  stretch.columns.resize(wanted.size());
  stretch.line_of.clear();
  for (CsvStretch::Cells& cells : stretch.columns) {
    cells.kinds.clear();
    cells.bits.clear();
    cells.texts.clear();
    cells.huge.clear();
  }
  CsvRows rows(text, delimiter, stretch.begin);
  std::vector<std::string_view> fields;
  while (rows.position() < until && rows.next(fields, wanted.back() + 1)) {
    stretch.line_of.push_back(rows.line() - 1);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      add_cell(wanted[i] < fields.size() ? fields[wanted[i]] : std::string_view(), stretch.columns[i]);
    }
  }
  stretch.end = rows.position();
  stretch.lines = rows.lines();
  stretch.problem = rows.problem();
  stretch.problem_offset = rows.problem_offset();
}

std::size_t guess_row(std::string_view text, std::size_t from, std::size_t near) {
  if (near >= text.size()) return text.size();
  const std::size_t last = std::min(text.size(), near + kGuessWithin);
  auto quotes = std::count(text.begin() + static_cast<std::ptrdiff_t>(from),
                           text.begin() + static_cast<std::ptrdiff_t>(near), '"');
  for (std::size_t at = near; at < last; ++at) {
    if (text[at] == '"') ++quotes;
    if (text[at] == '\n' && quotes % 2 == 0) return at + 1;
  }
  return text.size();
}

void deliver(const CsvStretch& stretch, std::int64_t first_row, std::int64_t first_line,
             std::span<ValueColumn> columns, const Sink& sink) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    ValueColumn& column = columns[i];
    const CsvStretch::Cells& cells = stretch.columns[i];
    auto text = cells.texts.begin();
    auto huge = cells.huge.begin();
    for (std::size_t at = 0; at < cells.kinds.size() && column.wanted(); ++at) {
      if (at % kRowsBetweenAsking == 0 && sink.stopped()) return;
      const std::int64_t row = first_row + static_cast<std::int64_t>(at);
      const std::int64_t line = first_line + stretch.line_of[at];
      switch (cells.kinds[at]) {
        case Number::Kind::kInteger:
          column.add(row, line, std::bit_cast<std::int64_t>(cells.bits[at]));
          break;
        case Number::Kind::kFloat:
          if (huge != cells.huge.end() && *huge == at) {
            ++huge;
            column.add(row, line, {Number::Kind::kFloat, 0, std::bit_cast<double>(cells.bits[at]), true},
                       *text++);
            break;
          }
          column.add(row, line, std::bit_cast<double>(cells.bits[at]));
          break;
        case Number::Kind::kMissing:
        case Number::Kind::kText:
          column.malformed(row, line, *text++);
      }
    }
  }
}

}  // namespace trapline::inputs
