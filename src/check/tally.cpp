#include "check/tally.hpp"

#include <algorithm>
#include <cmath>

namespace trapline::check {
namespace {

bool less(const Scalar& a, const Scalar& b) {
  if (is_integer(a) && is_integer(b)) return std::get<std::int64_t>(a) < std::get<std::int64_t>(b);
  return as_double(a) < as_double(b);
}

bool is_nan(const Scalar& value) { return !is_integer(value) && std::isnan(std::get<double>(value)); }

void take_least(std::optional<Scalar>& least, const std::optional<Scalar>& value) {
  if (value && !is_nan(*value) && (!least || less(*value, *least))) least = value;
}

void take_greatest(std::optional<Scalar>& greatest, const std::optional<Scalar>& value) {
  if (value && !is_nan(*value) && (!greatest || less(*greatest, *value))) greatest = value;
}

void merge_odd(InvalidValues& odd, const InvalidValues& later) {
  if (odd.count == 0) {
    odd = later;
  } else {
    odd.count += later.count;
  }
}

}  // namespace

bool ScalarLess::operator()(const Scalar& a, const Scalar& b) const {
  if (is_nan(a) || is_nan(b)) return !is_nan(a) && is_nan(b);
  return less(a, b);
}

void Detail::count(const Scalar& value) {
  const auto found = values.find(value);
  if (found != values.end()) {
    ++found->second;
  } else if (values.size() < kMaxValues) {
    values.emplace(value, 1);
  } else {
    ++other_values;
  }
}

void Detail::merge(const Detail& later) {
  for (const auto& [value, times] : later.values) {
    const auto found = values.find(value);
    if (found != values.end()) {
      found->second += times;
    } else if (values.size() < kMaxValues) {
      values.emplace(value, times);
    } else {
      other_values += times;
    }
  }
  other_values += later.other_values;
  for (const Place& place : later.places) {
    if (places.size() < kMaxPlaces) places.push_back(place);
  }
  if (seen.size() < later.seen.size()) seen.resize(later.seen.size());
  for (std::size_t i = 0; i < later.seen.size(); ++i) {
    if (later.seen[i]) seen[i] = true;
  }
}

void Tally::widen(const Scalar& low, const Scalar& high) {
  take_least(min, low);
  take_greatest(max, high);
}

void Tally::merge(const Tally& later) {
  if (!first && later.first) {
    first = later.first;
    reason = later.reason;
  }
  total += later.total;
  bad += later.bad;
  kept += later.kept;
  take_least(min, later.min);
  take_greatest(max, later.max);
  take_least(kept_min, later.kept_min);
  take_greatest(kept_max, later.kept_max);
  merge_odd(missing, later.missing);
  merge_odd(malformed, later.malformed);
  detailed = detailed || later.detailed;
  detail.merge(later.detail);
}

}  // namespace trapline::check
