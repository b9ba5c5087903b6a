// One guarded call: describes its arguments, applies the rows of its plan, keeps a record of it.
#pragma once

#include "guard/describe.hpp"
#include "guard/history.hpp"
#include "guard/plan.hpp"
#include "guard/state.hpp"

namespace trapline::guard {

struct Violation {
  const RowPlan* row = nullptr;
  bool applied = false;  // whether any row of the plan applied, violated or not
  trapline_scan scan;
};

// `arguments` is indexed by position in the schema and filled at the positions that the plan needs. True when
// a row is violated. Anything that goes wrong in here counts as "no violation": the program goes on
// untouched.
bool check_call(ThreadState& state, const Plan& plan, const Argument* arguments,
                Violation& violation) noexcept;

// Of a tensor whose elements the row does not read (the weights of a grouped product) nothing but the sizes
// is asked: it may be anywhere, and of any layout.
inline Part part_of_also(const RowPlan& row) { return reads_also(row) ? Part::kElements : Part::kShape; }

// The verdict of trapline_check for one row.
int apply_row(const RowPlan& plan, const Argument* arguments, trapline_scan& scan);

// The call as the history keeps it, without the ranges that only a check knows.
void record_call_into(CallRecord& record, const Plan& plan, const Argument* arguments);

// With TRAPLINE_DEBUG=1 says on stderr that the guard stepped aside.
void stepped_aside(const char* where, const char* why) noexcept;

}  // namespace trapline::guard
