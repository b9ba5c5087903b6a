// What to do at one overload of one operation: its rows of the contracts table, with argument names resolved
// to positions in the running torch's schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trapline/capi.h"

namespace trapline::guard {

constexpr int kMaxArguments = 24;  // an overload with more is not guarded; ATen's longest guarded one has 11
constexpr int kMaxRecorded = 4;    // arguments that the history keeps

struct RowPlan {
  const trapline_contract* row;
  std::int8_t argument, bound, dim, also;  // positions in the schema; -1: the row names none
};

struct CompiledSite;

// Hooks keep pointers to plans, and threads may still be in them after an uninstall: plans are never freed.
struct Plan {
  c10::OperatorHandle handle;
  std::string op;         // "aten::embedding"
  std::string overload;   // "" or "out"
  std::string impl_name;  // "embedding", "index_select.out": what torch::Library::impl wants
  std::vector<RowPlan> rows;
  std::vector<std::int8_t> needed;     // positions that rows or the history read, ascending
  std::vector<std::int8_t> recorded;   // positions of the tensors that the history keeps
  std::vector<std::int8_t> written;    // positions of what the operation writes to
  std::int8_t generator = -1;          // position of the generator that it draws from
  bool composite = false;              // decomposed before the backend keys
  bool remember = false;               // all rows only remember
  bool reads = false;                  // brings values of the device to the host
  bool counts_masks = false;           // the same where one of its tensors is a mask: the result's size
  const CompiledSite* site = nullptr;  // a check of a compiled graph: its handle is that of trapline::check
};

// One plan for every overload of the running torch that a row applies to; made at the first call.
const std::vector<const Plan*>& plans();

}  // namespace trapline::guard
