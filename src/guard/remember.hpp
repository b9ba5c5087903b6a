// Violations that are no error by themselves, kept as the possible origin of a later one: a NaN cast to an
// integer (requirement A7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "guard/describe.hpp"
#include "guard/device_records.hpp"
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
  std::string site = "";  // of a compiled graph
};

// The tensor that takes the values: the one that the row names as its bound, or else the argument itself.
struct Result {
  std::uintptr_t storage = 0;
  std::vector<std::int64_t> shape;
};
Result result_of(const RowPlan& row, const Argument* arguments);

// Keeps the newest kRemembered.
void remember(const RowPlan& row, const trapline_scan& scan, const Argument* arguments);

// The same for a violation that the device found in an earlier call.
void remember_late(const LaunchRecord& record, const trapline_scan& scan);

std::vector<Remembered> read_remembered();  // newest first

}  // namespace trapline::guard
