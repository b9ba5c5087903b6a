#include "check/column_sink.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <string_view>

namespace trapline::check {
namespace {

// Words of a column's name that say what it holds.
constexpr auto kLabelWords = std::to_array<std::string_view>({"label", "labels", "target", "targets", "y",
                                                              "class", "classes", "category", "categories",
                                                              "mask", "masks", "annotation", "segmentation"});
constexpr auto kIdWords = std::to_array<std::string_view>({"ids", "id", "token", "tokens", "tok"});
// And words with which it holds something else all the same.
constexpr auto kNoLabelWords =
    std::to_array<std::string_view>({"name", "names", "text", "weight", "weights", "file", "path"});
constexpr auto kNoIdWords = std::to_array<std::string_view>(
    {"type", "types", "position", "mask", "sample", "row", "label", "labels", "index", "user", "image"});

constexpr std::size_t kMostNames = 32;

template <class Words>
bool has(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

template <class Visit>
void each_word(std::string_view name, Visit&& visit) {
  std::string word;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      visit(word);
      word.clear();
    }
  }
  if (!word.empty()) visit(word);
}

bool could_be(What what, const inputs::Column& column) {
  return is_integral(what) || is_floating(column.dtype);
}

}  // namespace

bool is_called(What what, std::string_view name) {
  if (!is_integral(what)) return true;
  bool yes = false, no = false;
  each_word(name, [&](const std::string& word) {
    yes = yes || (what == What::kLabels ? has(kLabelWords, word) : has(kIdWords, word));
    no = no || (what == What::kLabels ? has(kNoLabelWords, word) : has(kNoIdWords, word));
  });
  return yes && !no;
}

bool ColumnSink::begin(const inputs::Column& column) {
  bool wanted = could_be(rule_.what, column);
  if (!wanted_.column.empty()) {
    wanted = column.name == wanted_.column;
  } else if (!wanted_.any) {
    wanted = wanted && is_called(rule_.what, column.name);
  }
  if (!wanted_.only.empty()) wanted = wanted && wanted_.only.contains(column.name);
  if (!wanted) {
    if (passed_over_.size() < kMostNames) passed_over_.push_back(column.name);
    return false;
  }
  by_name_[column.name] = columns_.size();  // a later table may have a column of the same name
  Open& made = columns_.emplace_back();
  made.result.name = column.name;
  made.result.dtype = column.dtype;
  made.result.sizes = column.sizes;
  return true;
}

ColumnSink::Open& ColumnSink::open(const inputs::Column& column) {
  const auto found = by_name_.find(column.name);
  if (found != by_name_.end()) return columns_[found->second];
  by_name_.emplace(column.name, columns_.size());
  Open& made = columns_.emplace_back();
  made.result.name = column.name;
  made.result.dtype = column.dtype;
  return made;
}

bool ColumnSink::piece(const inputs::Piece& piece) {
  Open& column = open(*piece.column);
  const std::int64_t carried =
      !piece.row_of.empty() && piece.row_of.front() == column.row ? column.length : 0;
  column.result.dtype = piece.view.dtype;
  column.result.tally.merge(closely_ ? look_closer(rule_, piece, carried)
                                     : scan_piece(rule_, piece, carried, parallel_));
  if (piece.first_line > 0) column.line_of_row_0 = piece.first_line - piece.first_row;
  measure(column, piece);
  bytes_ += piece.view.numel() * static_cast<std::int64_t>(size_of(piece.view.dtype));
  return !stopped();
}

void ColumnSink::malformed(const inputs::Column& column, std::int64_t row, std::string_view text) {
  constexpr std::size_t kMostText = 80;
  Open& at = open(column);
  Odd& odd = at.result.tally.malformed;
  if (odd.count++ > 0) return;
  odd.first.index = {row};
  odd.first.line = at.line_of_row_0 > 0 ? at.line_of_row_0 + row : 0;
  odd.text = std::string(text.substr(0, kMostText));
}

void ColumnSink::skipped(std::string_view name, std::string_view why) {
  if (passed_over_.size() < kMostNames)
    passed_over_.push_back(std::string(name) + " (" + std::string(why) + ")");
}

void ColumnSink::class_names(const inputs::Column& column, std::span<const inputs::ClassName> names) {
  open(column).result.classes.assign(names.begin(), names.end());
}

void ColumnSink::measure(Open& column, const inputs::Piece& piece) {
  if (piece.row_of.empty()) {
    if (!rule_.positions || piece.view.sizes.size() < 2) return;
    const std::int64_t length = piece.view.sizes.back();
    for (std::int64_t i = 0; i < piece.view.sizes[0]; ++i) {
      const std::int64_t row = piece.first_row + i;
      const std::int64_t line = piece.first_line > 0 ? piece.first_line + i : 0;
      column.result.lengths.add(row, line, length, *rule_.positions);
    }
    return;
  }
  for (const std::int64_t row : piece.row_of) {
    if (row != column.row) {
      close_row(column);
      column.row = row;
      column.row_line = piece.first_line > 0 ? piece.first_line + (row - piece.first_row) : 0;
    }
    ++column.length;
  }
}

void ColumnSink::close_row(Open& column) {
  if (column.row >= 0 && rule_.positions) {
    column.result.lengths.add(column.row, column.row_line, column.length, *rule_.positions);
  }
  column.row = -1;
  column.length = 0;
}

std::vector<ColumnResult> ColumnSink::take() {
  std::vector<ColumnResult> results;
  for (Open& column : columns_) {
    close_row(column);
    results.push_back(std::move(column.result));
  }
  return results;
}

}  // namespace trapline::check
