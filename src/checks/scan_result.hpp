// What a scan found. Positions count elements in row-major order of the view's own shape.
#pragma once

#include <cstdint>
#include <limits>

#include "checks/reason.hpp"

namespace trapline {

struct IntScan {
  std::int64_t bad = 0;
  std::int64_t total = 0;
  std::int64_t first = -1;  // position of the first bad element; -1: none
  std::int64_t value = 0;   // its value
  std::int64_t min = 0;     // over all elements; 0 when there is none
  std::int64_t max = 0;
  Reason reason = Reason::kNone;  // why the first bad element is bad

  bool operator==(const IntScan&) const = default;
};

struct FloatScan {
  std::int64_t bad = 0;
  std::int64_t total = 0;
  std::int64_t first = -1;
  double value = 0;
  // Over all elements but NaN; NaN when nothing is left. Never -0.0, so that the answer does not depend on
  // order.
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  Reason reason = Reason::kNone;
};

}  // namespace trapline
