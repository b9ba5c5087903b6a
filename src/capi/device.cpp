#include "trapline/device.h"

#include <exception>
#include <span>

#include "capi/rows.hpp"
#include "contracts/plan_call.hpp"
#include "cuda/launch.hpp"
#include "cuda/process.hpp"

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

int trapline_device_ready(int device) {
  // Strings are made on this way: memory may be exhausted, and no exception may leave.
  try {
    return trapline::cuda::make_ready(device) ? 1 : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

const char* trapline_device_why(void) {
  try {
    return trapline::cuda::why_not_ready();
  } catch (const std::exception&) {
    return "device checks: out of memory: free some memory and run again";
  }
}

int64_t trapline_device_reserve(int device, void* /*stream*/, int /*flags*/) {
  try {
    return trapline::cuda::reserve(device);
  } catch (const std::exception&) {
    return -1;
  }
}

int64_t trapline_device_scratch(const trapline_device_check* check, int flags) {
  return check == nullptr ? 0 : trapline::cuda::scratch_bytes(*check, flags);
}

int trapline_device_launch(int device, void* stream, int64_t slot, const trapline_device_check* check,
                           void* healed, void* scratch, int flags) {
  try {
    return check != nullptr && trapline::cuda::launch(device, stream, slot, *check, healed, scratch, flags)
               ? 1
               : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

int trapline_device_pending(void) { return trapline::cuda::pending() ? 1 : 0; }

int trapline_device_poll(trapline_device_report* reports, int capacity) {
  try {
    return trapline::cuda::take_reports(reports, capacity);
  } catch (const std::exception&) {
    return 0;
  }
}

int trapline_device_wait(void) {
  try {
    return trapline::cuda::wait_all() ? 1 : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

int trapline_device_wait_stream(int device, void* stream) {
  try {
    return trapline::cuda::wait_stream(device, stream) ? 1 : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

}  // extern "C"
