#include "check/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "checks/element.hpp"
#include "checks/scan.hpp"
#include "checks/walk.hpp"

namespace trapline::check {
namespace {

constexpr std::int64_t kBlock = std::int64_t{1} << 18U;  // elements: one unit of work for a thread
constexpr double kMaxExact = 9007199254740992.0;         // 2^53

std::int64_t upper(const Rule& rule) { return rule.limit; }

Tally from(const IntScan& scan) {
  Tally tally;
  tally.total = scan.total;
  tally.bad = scan.bad;
  tally.reason = scan.reason;
  if (scan.total > 0) tally.widen(scan.min, scan.max);
  return tally;
}

Tally from(const FloatScan& scan) {
  Tally tally;
  tally.total = scan.total;
  tally.bad = scan.bad;
  tally.reason = scan.reason;
  tally.widen(scan.min, scan.max);  // NaN, of nothing but NaN, widens nothing
  return tally;
}

// One dense or strided block; the first offender's position counts from the block's start.
Tally scan_block(const Rule& rule, const TensorView& view, std::int64_t& first, Scalar& value) {
  if (is_integral(rule.kind)) {
    const IntScan scan = scan_index(view, 0, upper(rule), rule.ignore_index);
    first = scan.first;
    value = scan.value;
    return from(scan);
  }
  const FloatScan scan =
      rule.kind == RuleKind::kProbabilities ? scan_probability_rows(view) : scan_finite(view);
  first = scan.first;
  value = scan.value;
  return from(scan);
}

Tally scan_contiguous(const Rule& rule, const inputs::Piece& piece, std::int64_t carried,
                      const Parallel& parallel) {
  const TensorView& view = piece.view;
  const std::int64_t total = view.numel();
  const std::int64_t blocks = (total + kBlock - 1) / kBlock;
  const auto* bytes = static_cast<const char*>(view.data);
  const auto width = static_cast<std::int64_t>(size_of(view.dtype));
  std::vector<Tally> parts(static_cast<std::size_t>(blocks));
  parallel(blocks, [&](std::int64_t i) {
    const std::int64_t start = i * kBlock;
    const std::array<std::int64_t, 1> size{std::min(kBlock, total - start)}, stride{1};
    std::int64_t first = -1;
    Scalar value = std::int64_t{0};
    Tally& part = parts[static_cast<std::size_t>(i)];
    part = scan_block(rule, {bytes + start * width, view.dtype, size, stride}, first, value);
    if (first < 0) return;
    part.first = place_of(piece, start + first, carried);
    part.first->value = value;
  });
  Tally all;
  for (const Tally& part : parts) all.merge(part);
  return all;
}

// Calls visit(position, value) for every element in row-major order.
template <class Visit>
void each_element(const TensorView& view, Visit&& visit) {
  if (view.numel() == 0) return;
  with_type(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* data = static_cast<const T*>(view.data);
    const Layout layout = row_major_layout(view, view.sizes.size());
    std::int64_t position = 0;
    for_each_offset(layout, layout.dims, [&](std::int64_t offset) {
      visit(position++, widen(load(data + offset)));
      return true;
    });
  });
}

// Judges element by element, for columns of numbers that stand for integers and for the details.
class Judge {
 public:
  Judge(const Rule& rule, const inputs::Piece& piece, std::int64_t carried, bool detailed)
      : rule_(rule), piece_(piece), carried_(carried) {
    tally_.detailed = detailed;
    if (detailed && rule.kind == RuleKind::kLabels && rule.limit > 0 && rule.limit <= Detail::kMaxClasses) {
      tally_.detail.seen.resize(static_cast<std::size_t>(rule.limit));
    }
  }

  Tally run() {
    each_element(piece_.view, [&](std::int64_t position, auto value) { take(position, value); });
    tally_.total = piece_.view.numel() - tally_.missing.count - tally_.malformed.count;
    return std::move(tally_);
  }

 private:
  void take(std::int64_t position, std::int64_t value) {
    if (!is_integral(rule_.kind)) return take(position, static_cast<double>(value));
    tally_.widen(value, value);
    const Reason reason = element::index(value, 0, upper(rule_));
    const bool ignored = rule_.ignore_index == value;
    if (!ignored) {
      ++tally_.kept;
      if (!tally_.kept_min || value < std::get<std::int64_t>(*tally_.kept_min)) tally_.kept_min = value;
      if (!tally_.kept_max || value > std::get<std::int64_t>(*tally_.kept_max)) tally_.kept_max = value;
    }
    if (reason == Reason::kNone) {
      auto& seen = tally_.detail.seen;
      if (!seen.empty()) seen[static_cast<std::size_t>(value)] = true;
    } else if (!ignored) {
      offend(position, value, reason);
    }
  }

  void take(std::int64_t position, double value) {
    if (!is_integral(rule_.kind)) {
      tally_.widen(value, value);
      const Reason reason = element::finite(value);
      if (reason != Reason::kNone) offend(position, value, reason);
      return;
    }
    if (!std::isfinite(value)) return note(tally_.missing, position, value);
    if (value != std::trunc(value) || std::abs(value) > kMaxExact) {
      return note(tally_.malformed, position, value);
    }
    take(position, static_cast<std::int64_t>(value));
  }

  void offend(std::int64_t position, const Scalar& value, Reason reason) {
    ++tally_.bad;
    const bool wanted = tally_.detailed && tally_.detail.places.size() < Detail::kMaxPlaces;
    if (!tally_.first || wanted) {
      Place place = place_of(piece_, position, carried_);
      place.value = value;
      if (wanted) tally_.detail.places.push_back(place);
      if (!tally_.first) {
        tally_.reason = reason;
        tally_.first = std::move(place);
      }
    }
    if (tally_.detailed) tally_.detail.count(value);
  }

  void note(InvalidValues& odd, std::int64_t position, double value) {
    if (odd.count++ > 0) return;
    odd.first = place_of(piece_, position, carried_);
    odd.first.value = value;
    odd.text = to_text(value);
  }

  const Rule& rule_;
  const inputs::Piece& piece_;
  std::int64_t carried_;
  Tally tally_;
};

// Rows of probabilities: details are the rows' first offenders.
Tally look_at_rows(const Rule& rule, const inputs::Piece& piece, std::int64_t carried) {
  std::int64_t first = -1;
  Scalar value = std::int64_t{0};
  Tally tally = scan_block(rule, piece.view, first, value);
  tally.detailed = true;
  if (first >= 0) {
    tally.first = place_of(piece, first, carried);
    tally.first->value = value;
    tally.detail.places.push_back(*tally.first);
  }
  return tally;
}

}  // namespace

Place place_of(const inputs::Piece& piece, std::int64_t flat, std::int64_t carried) {
  Place place;
  const auto& sizes = piece.view.sizes;
  if (sizes.empty()) return place;
  place.index.resize(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    const std::int64_t size = std::max<std::int64_t>(sizes[d], 1);
    place.index[d] = flat % size;
    flat /= size;
  }
  const std::int64_t element = place.index[0];
  std::int64_t rows_before = element;
  if (piece.row_of.empty()) {
    place.index[0] += piece.first_row;
  } else {
    const auto at = static_cast<std::size_t>(element);
    const std::int64_t row = piece.row_of[at];
    std::size_t start = at;
    while (start > 0 && piece.row_of[start - 1] == row) --start;
    const std::int64_t within = element - static_cast<std::int64_t>(start) + (start == 0 ? carried : 0);
    place.index[0] = row;
    if (!piece.scalars) place.index.insert(place.index.begin() + 1, within);
    rows_before = row - piece.first_row;
  }
  if (piece.first_line > 0) place.line = piece.first_line + rows_before;
  return place;
}

Tally scan_piece(const Rule& rule, const inputs::Piece& piece, std::int64_t carried,
                 const Parallel& parallel) {
  if (is_integral(rule.kind) && is_floating(piece.view.dtype)) {
    return Judge(rule, piece, carried, false).run();
  }
  if (rule.kind != RuleKind::kProbabilities && piece.view.is_contiguous() && !piece.view.sizes.empty()) {
    return scan_contiguous(rule, piece, carried, parallel);
  }
  std::int64_t first = -1;
  Scalar value = std::int64_t{0};
  Tally tally = scan_block(rule, piece.view, first, value);
  if (first >= 0) {
    tally.first = place_of(piece, first, carried);
    tally.first->value = value;
  }
  return tally;
}

Tally scan_details(const Rule& rule, const inputs::Piece& piece, std::int64_t carried) {
  if (rule.kind == RuleKind::kProbabilities) return look_at_rows(rule, piece, carried);
  return Judge(rule, piece, carried, true).run();
}

}  // namespace trapline::check
