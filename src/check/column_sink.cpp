#include "check/column_sink.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "inputs/mapped_file.hpp"

namespace trapline::check {
namespace {

constexpr std::int64_t kBytesBetweenReleases = std::int64_t{32} << 20U;
constexpr std::size_t kMaxNames = 32;

bool could_be(RuleKind kind, const inputs::Column& column) {
  return is_integral(kind) || is_floating(column.dtype);
}

// Rows count from the start of the file that they lie in.
void put_in_file(Place& place, const std::string& file, std::int64_t file_row) {
  if (!place.index.empty()) place.index[0] -= file_row;
  place.source = file;
  place.before = file_row;
}

}  // namespace

bool ColumnSink::wants(const inputs::Column& column) const {
  if (!wanted_.column.empty()) return column.name == wanted_.column;
  return wanted_.any ? could_be(rule_.kind, column) : wanted_.only.contains(column.name);
}

ColumnSink::Open& ColumnSink::make(const inputs::Column& column) {
  by_name_[column.name] = columns_.size();  // a later table may have a column of the same name
  Open& made = columns_.emplace_back();
  made.result.name = column.name;
  made.result.dtype = column.dtype;
  made.result.sizes = column.sizes;
  made.result.stored = std::string(column.stored);
  return made;
}

bool ColumnSink::begin(const inputs::Column& column) {
  if (!wants(column)) {
    pass_over(column.name);
    return false;
  }
  make(column);
  return true;
}

bool ColumnSink::begin_text(const inputs::Column& column) {
  if (rule_.kind != RuleKind::kLabels || wanted_.any || !wants(column)) return false;
  make(column).result.texts.emplace();
  return true;
}

bool ColumnSink::text(const inputs::Column& column, std::int64_t row, std::int64_t line,
                      std::string_view text) {
  constexpr std::size_t kMaxClasses = 65536, kMaxText = 256;
  Open& at = open(column);
  if (text.empty()) return !stopped();  // some tables leave out what is clear, and a program what is not
  ++at.result.tally.total;
  std::string name(text.substr(0, kMaxText));
  if (at.texts.contains(name)) return !stopped();
  TextClasses& texts = *at.result.texts;
  texts.too_many = texts.all.size() == kMaxClasses;
  if (texts.too_many) return false;
  Place place{{row}, line};
  if (!at.file.empty()) put_in_file(place, at.file, at.file_row);
  at.texts.insert(name);
  texts.all.emplace_back(std::move(name), std::move(place));
  return !stopped();
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
  Tally tally = closely_ ? scan_details(rule_, piece, carried) : scan_piece(rule_, piece, carried, parallel_);
  if (!column.file.empty()) {
    if (tally.first) put_in_file(*tally.first, column.file, column.file_row);
    put_in_file(tally.missing.first, column.file, column.file_row);
    put_in_file(tally.malformed.first, column.file, column.file_row);
    for (Place& place : tally.detail.places) put_in_file(place, column.file, column.file_row);
  }
  column.result.tally.merge(tally);
  measure(column, piece);
  bytes_ += piece.view.numel() * static_cast<std::int64_t>(size_of(piece.view.dtype));
  if (bytes_ - released_ >= kBytesBetweenReleases) {
    inputs::release_all_pages();
    released_ = bytes_;
  }
  return !stopped();
}

void ColumnSink::malformed(const inputs::Column& column, std::int64_t row, std::int64_t line,
                           std::string_view text) {
  constexpr std::size_t kMaxText = 80;
  Open& at = open(column);
  const bool missing = inputs::is_missing(text);
  InvalidValues& odd = missing ? at.result.tally.missing : at.result.tally.malformed;
  if (odd.count++ > 0) return;
  odd.first.index = {row};
  odd.first.line = line;
  if (!at.file.empty()) put_in_file(odd.first, at.file, at.file_row);
  odd.text = std::string(text.substr(0, kMaxText));
  odd.absent = missing;
  if (missing) odd.first.value = std::numeric_limits<double>::quiet_NaN();
}

void ColumnSink::file(const inputs::Column& column, std::string_view path, std::int64_t first_row) {
  Open& at = open(column);
  close_row(at);  // it lay in the file before
  at.file = at.result.last_file = std::string(path);
  at.file_row = first_row;
}

void ColumnSink::skipped(std::string_view name, std::string_view why) {
  pass_over(std::string(name) + " (" + std::string(why) + ")");
}

void ColumnSink::object(std::string_view name, std::string_view type) {
  if (objects_.size() >= kMaxNames) return;
  objects_.push_back(std::string(type) + (name.empty() ? "" : " at " + std::string(name.substr(0, 80))));
}

// The tables of one source (splits, masks) have columns of the same names.
void ColumnSink::pass_over(std::string name) {
  if (passed_over_.size() < kMaxNames && std::ranges::find(passed_over_, name) == passed_over_.end()) {
    passed_over_.push_back(std::move(name));
  }
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
      add_length(column, row, line, length, *rule_.positions);
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

void ColumnSink::add_length(Open& column, std::int64_t row, std::int64_t line, std::int64_t length,
                            std::int64_t most) {
  Lengths& lengths = column.result.lengths;
  if (lengths.add(row, line, length, most) && !column.file.empty()) {
    put_in_file(lengths.first, column.file, column.file_row);
  }
}

void ColumnSink::close_row(Open& column) {
  if (column.row >= 0 && rule_.positions) {
    add_length(column, column.row, column.row_line, column.length, *rule_.positions);
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
