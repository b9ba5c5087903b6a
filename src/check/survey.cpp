#include "check/survey.hpp"

#include <algorithm>
#include <cmath>

#include "checks/element.hpp"
#include "checks/walk.hpp"

namespace trapline::check {
namespace {

constexpr std::int64_t kSample = 16384;       // values of a column
constexpr std::int64_t kMaxKept = 4'000'000;  // different values, of all columns: bounds the memory
constexpr std::size_t kMaxNames = 32;

}  // namespace

Survey::Open& Survey::open(const inputs::Column& column) {
  const auto [at, fresh] = by_name_.emplace(column.name, columns_.size());
  if (fresh) {
    Open& made = columns_.emplace_back();
    made.evidence.name = column.name;
    made.evidence.dtype = column.dtype;
    made.evidence.dims = std::max<std::size_t>(column.sizes.size(), 1);
  }
  return columns_[at->second];
}

bool Survey::begin(const inputs::Column& column) { return open(column).evidence.seen < kSample; }

bool Survey::begin_text(const inputs::Column& column) {
  if (!may_be_text_labels(column.name)) return false;
  Evidence& evidence = open(column).evidence;
  evidence.text = true;
  return evidence.texts < kSample;
}

bool Survey::text(const inputs::Column& column, std::int64_t, std::int64_t, std::string_view text) {
  constexpr std::size_t kMaxText = 256;  // of one that is compared
  Open& at = open(column);
  if (!text.empty()) ++at.evidence.texts;
  if (!text.empty() && kept_ < kMaxKept && at.texts.insert(std::string(text.substr(0, kMaxText))).second)
    ++kept_;
  return at.evidence.texts < kSample && !stopped();
}

bool Survey::piece(const inputs::Piece& piece) {
  Open& column = open(*piece.column);
  Evidence& evidence = column.evidence;
  evidence.dtype = piece.view.dtype;
  evidence.dims = std::max({evidence.dims, piece.view.sizes.size(), std::size_t{1}});
  if (!piece.row_of.empty() && !piece.scalars) evidence.lists = true;
  if (piece.view.numel() > 0) {
    const Layout layout = row_major_layout(piece.view, piece.view.sizes.size());
    with_type(piece.view.dtype, [&](auto tag) {
      using T = decltype(tag);
      const T* data = static_cast<const T*>(piece.view.data);
      std::int64_t left = kSample;
      for_each_offset(layout, layout.dims, [&](std::int64_t offset) {
        take_value(column, static_cast<double>(widen(load(data + offset))));
        return --left > 0;
      });
    });
  }
  return evidence.seen < kSample && kept_ < kMaxKept && !stopped();
}

void Survey::take_value(Open& column, double value) {
  constexpr double kMaxExact = 9007199254740992.0;  // 2^53
  if (!std::isfinite(value)) return;
  Evidence& evidence = column.evidence;
  ++evidence.seen;
  if (value != std::trunc(value)) {
    ++evidence.fractions;
    return;
  }
  if (value < 0 && value != -1 && value != -100) ++evidence.negative;
  const auto whole = static_cast<std::int64_t>(std::clamp(value, -kMaxExact, kMaxExact));
  if (kept_ < kMaxKept && column.kinds.insert(whole).second) ++kept_;
}

void Survey::malformed(const inputs::Column& column, std::int64_t, std::int64_t, std::string_view text) {
  if (!inputs::is_missing(text)) ++open(column).evidence.texts;
}

void Survey::skipped(std::string_view name, std::string_view why) {
  std::string text = std::string(name) + " (" + std::string(why) + ")";
  if (without_.size() < kMaxNames && std::ranges::find(without_, text) == without_.end()) {
    without_.push_back(std::move(text));
  }
}

void Survey::class_names(const inputs::Column& column, std::span<const inputs::ClassName> names) {
  if (!names.empty()) open(column).evidence.classes = true;
}

std::vector<Evidence> Survey::take() {
  std::vector<Evidence> evidence;
  for (Open& column : columns_) {
    column.evidence.distinct = column.evidence.text ? column.texts.size() : column.kinds.size();
    evidence.push_back(std::move(column.evidence));
  }
  return evidence;
}

}  // namespace trapline::check
