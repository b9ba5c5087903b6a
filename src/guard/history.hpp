// The last guarded calls of the process (requirement C7): shapes, dtypes, value ranges and the innermost
// frames.
//
// Each thread writes its own ring without allocation, without the GIL and without waiting; a reader merges
// the rings when a report is made.
#pragma once

#include <cstdint>
#include <vector>

#include "guard/frames.h"
#include "guard/plan.hpp"
#include "guard/state.hpp"

namespace trapline::guard {

constexpr int kHistory = 20;
constexpr int kHistoryFrames = 8;
constexpr int kHistoryDims = 6;

struct TensorRecord {
  std::int8_t argument;       // position in the schema
  std::int8_t list_position;  // -1: the argument is no list
  std::uint8_t dim;           // of the tensor; only kHistoryDims sizes are kept
  std::uint8_t dtype;         // c10::ScalarType
  bool has_range, is_float;
  std::int64_t sizes[kHistoryDims];
  union Number {
    std::int64_t integer;
    double real;
  } min, max;
};

struct CallRecord {
  const Plan* plan;
  std::uint64_t sequence;  // order among all threads; 0: never written
  std::uint8_t tensors, frames;
  TensorRecord tensor[kMaxRecorded];
  trapline_frame frame[kHistoryFrames];
};

// The slot for the calling thread's next record, or nullptr while a reader looks at this ring (then the call
// is not recorded). commit() makes the record visible.
CallRecord* begin_record(ThreadState& state);
void commit_record(ThreadState& state);

// The last kHistory calls of all threads since the process began (a forked child begins anew), oldest first.
std::vector<CallRecord> read_history();

}  // namespace trapline::guard
