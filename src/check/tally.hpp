// What was seen in a column, or in a part of one: tallies of consecutive parts merge into the tally of the
// whole, on whatever thread, process or machine the parts were read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checks/reason.hpp"
#include "core/scalar.hpp"

namespace trapline::check {

struct Place {
  std::vector<std::int64_t> index;  // position in the column, or in the file of it: row first
  std::int64_t line = 0;            // of a text file, from 1; 0: none
  Scalar value = std::int64_t{0};
  std::string source{};     // the file it was seen in, where a column goes over several; else empty
  std::int64_t before = 0;  // rows of the column in the files before that one
};

// Values that are no integers where integers are wanted.
struct InvalidValues {
  std::int64_t count = 0;
  Place first;
  std::string text;     // of the first: "cat", "0.5", ""
  bool absent = false;  // it is a field without a value, and no NaN
};

// Orders NaN like a number above all others, so that it can be a key.
struct ScalarLess {
  bool operator()(const Scalar& a, const Scalar& b) const;
};

// What is only looked at once something is bad.
struct Detail {
  static constexpr std::size_t kMaxValues = 4096;
  static constexpr std::size_t kMaxPlaces = 8;
  static constexpr std::int64_t kMaxClasses = std::int64_t{1} << 20;

  std::map<Scalar, std::int64_t, ScalarLess> values;  // offending ones with counts
  std::int64_t other_values = 0;                      // offenders beyond kMaxValues different ones
  std::vector<Place> places;                          // of the first offenders
  std::vector<bool> seen;                             // labels: which of [0, limit) occur

  void count(const Scalar& value);
  void merge(const Detail& later);
};

struct Tally {
  std::int64_t total = 0;
  std::int64_t bad = 0;
  std::int64_t kept = 0;           // integers that are not the ignored value, when `detailed`
  std::optional<Scalar> min, max;  // of all elements; NaN left out
  std::optional<Scalar> kept_min, kept_max;
  Reason reason = Reason::kNone;  // of the first offender
  std::optional<Place> first;
  InvalidValues missing;    // NaN and Inf where integers are wanted
  InvalidValues malformed;  // text, fractions
  bool detailed = false;
  Detail detail;

  bool clean() const { return bad == 0 && missing.count == 0 && malformed.count == 0; }
  void widen(const Scalar& low, const Scalar& high);
  void merge(const Tally& later);
};

}  // namespace trapline::check
