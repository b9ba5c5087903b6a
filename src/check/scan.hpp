// One piece of a column against a rule.
#pragma once

#include <cstdint>
#include <functional>

#include "check/rule.hpp"
#include "check/tally.hpp"
#include "inputs/reader.hpp"

namespace trapline::check {

// Where the element at row-major position `flat` of the piece lies in the column.
// `carried`: elements of the piece's first row that earlier pieces held (lists that go over several pieces).
Place place_of(const inputs::Piece& piece, std::int64_t flat, std::int64_t carried);

// Runs body(0) ... body(count - 1), in any order and on several threads where there are some.
using Parallel = std::function<void(std::int64_t count, const std::function<void(std::int64_t)>& body)>;

inline void one_after_the_other(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// Extremes, how many are bad and which is the first: one sweep at the speed of memory.
Tally scan_piece(const Rule& rule, const inputs::Piece& piece, std::int64_t carried,
                 const Parallel& parallel = one_after_the_other);

// The same and the details, element by element.
Tally scan_details(const Rule& rule, const inputs::Piece& piece, std::int64_t carried);

}  // namespace trapline::check
