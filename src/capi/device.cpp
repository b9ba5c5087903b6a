#include "trapline/device.h"

#include <span>

#include "capi/rows.hpp"
#include "contracts/plan_call.hpp"

extern "C" {

int trapline_device_plan(const trapline_contract* row, const trapline_arg* argument,
                         const trapline_arg* bound, const trapline_arg* dim, const trapline_arg* also,
                         trapline_device_check* checks, int capacity, int* count, trapline_scan* scan) {
  const trapline::Contract* contract = trapline::contract_of(row);
  if (contract == nullptr || checks == nullptr || capacity < 0 || count == nullptr || scan == nullptr) {
    return TRAPLINE_PLAN_NOTHING;
  }
  const int verdict = trapline::plan_call(*contract, {argument, bound, dim, also},
                                          {checks, static_cast<std::size_t>(capacity)}, *count, *scan);
  // The table's own row, which outlives the caller's copy.
  const auto at = static_cast<std::size_t>(contract - trapline::contracts().data());
  for (int i = 0; i < *count; ++i) checks[i].row = &trapline::rows()[at];
  return verdict;
}

}  // extern "C"
