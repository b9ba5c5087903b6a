// Violations that are no error by themselves, kept as the possible origin of a later one: a NaN cast to an
// integer (requirement A7).
#pragma once

#include <cstdint>
#include <vector>

#include "guard/describe.hpp"
#include "guard/frames.h"
#include "guard/plan.hpp"

namespace trapline::guard {

constexpr int kRemembered = 16;
constexpr int kRememberedFrames = 64;

struct Remembered {
  const trapline_contract* row;
  trapline_scan scan;
  std::vector<trapline_frame> frames;  // innermost first; code objects are kept alive
  std::uintptr_t storage;              // address of the storage that took the values; 0: unknown
  std::vector<std::int64_t> shape;
};

// Keeps the newest kRemembered. The result of the call is the tensor that the row names as its bound, or else
// the argument itself.
void remember(const RowPlan& row, const trapline_scan& scan, const Argument* arguments);

std::vector<Remembered> read_remembered();  // newest first

}  // namespace trapline::guard
