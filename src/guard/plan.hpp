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

// The elements of `also` decide, not only its kind, its sizes or its number. Whoever has that argument
// elsewhere than the checked one has to bring it there only then.
inline bool reads_also(const RowPlan& plan) { return plan.row->also == TRAPLINE_ALSO_LENGTHS; }

struct CompiledSite;

// Hooks keep pointers to plans, and threads may still be in them after an uninstall: plans are never freed.
struct Plan {
  c10::OperatorHandle handle;
  std::string op;        // "aten::embedding"
  std::string overload;  // "" or "out"
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

// "aten::index_select.out": what torch::Library::impl wants.
inline std::string full_name(const Plan& plan) {
  return plan.overload.empty() ? plan.op : plan.op + "." + plan.overload;
}

// Whether the table has a row for that operation or overload.
bool has_rows(const c10::OperatorName& name);

// The plan of an overload; null when no row applies to its schema.
const Plan* make_plan(const c10::OperatorHandle& handle);

}  // namespace trapline::guard
