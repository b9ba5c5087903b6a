#include "guard/check.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "guard/history.hpp"
#include "guard/hooks_install.hpp"
#include "guard/intern.hpp"
#include "guard/remember.hpp"

namespace trapline::guard {
namespace {

void record_tensor(CallRecord& record, const at::Tensor& tensor, std::int8_t argument, int list_position) {
  if (record.tensors == kMaxRecorded || !tensor.defined()) return;
  TensorRecord& out = record.tensor[record.tensors++];
  const c10::IntArrayRef sizes = tensor.sizes();
  out.argument = argument;
  out.list_position = static_cast<std::int8_t>(list_position);
  out.dim = static_cast<std::uint8_t>(sizes.size());
  out.dtype = static_cast<std::uint8_t>(tensor.scalar_type());
  out.has_range = false;
  for (std::size_t d = 0; d < sizes.size() && d < kHistoryDims; ++d) out.sizes[d] = sizes[d];
}

void record_arguments(CallRecord& record, const Plan& plan, const Argument* arguments) {
  for (const std::int8_t at : plan.recorded) {
    const Argument& argument = arguments[at];
    if (argument.kind == TRAPLINE_ARG_TENSOR) record_tensor(record, *argument.tensor, at, -1);
    if (argument.kind != TRAPLINE_ARG_LIST) continue;
    for (std::size_t i = 0; i < argument.list.size(); ++i) {
      if (argument.list[i].isTensor())
        record_tensor(record, argument.list[i].toTensor(), at, static_cast<int>(i));
    }
  }
}

// Smallest and largest of what a row looked at. For a list the scan speaks of one of its tensors.
void record_range(CallRecord& record, const RowPlan& row, const trapline_scan& scan) {
  if (scan.total <= 0) return;
  for (int i = 0; i < record.tensors; ++i) {
    TensorRecord& tensor = record.tensor[i];
    if (tensor.argument != row.argument) continue;
    if (tensor.list_position >= 0 && scan.list_position >= 0 && tensor.list_position != scan.list_position)
      continue;
    tensor.has_range = true;
    tensor.is_float = scan.is_float != 0;
    if (tensor.is_float) {
      tensor.min.real = scan.fmin;
      tensor.max.real = scan.fmax;
    } else {
      tensor.min.integer = scan.imin;
      tensor.max.integer = scan.imax;
    }
    return;
  }
}

bool check_rows(ThreadState& state, const Plan& plan, const Argument* arguments, Violation& violation) {
  CallRecord* record = plan.remember ? nullptr : begin_record(state);
  struct Commit {
    ThreadState& state;
    bool due;
    ~Commit() {
      if (due) commit_record(state);
    }
  } commit{state, record != nullptr};
  if (record != nullptr) {
    record_call_into(*record, plan, arguments);
  }
  for (const RowPlan& row : plan.rows) {
    const int verdict = apply_row(row, arguments, violation.scan);
    if (verdict == TRAPLINE_NOT_APPLICABLE) continue;
    violation.applied = true;
    if (record != nullptr) record_range(*record, row, violation.scan);
    if (verdict != TRAPLINE_VIOLATED) continue;
    if (row.row->remember != 0) {
      remember(row, violation.scan, arguments);
      continue;
    }
    violation.row = &row;
    return true;
  }
  return false;
}

}  // namespace

// A tensor's sizes, strides, layout and device are functions that compilers leave out of line: a line of the
// instruction cache for each, and beside an operation of PyTorch's that cache is what is scarce.
[[gnu::flatten]] int apply_row(const RowPlan& plan, const Argument* arguments, trapline_scan& scan) {
  Scratch scratch;
  trapline_arg argument, bound, dim, also;
  if (!describe(arguments[plan.argument], Part::kElements, argument, scratch)) return TRAPLINE_NOT_APPLICABLE;
  // A bound that the call leaves out: the row says what then.
  if (plan.bound >= 0 && arguments[plan.bound].kind == TRAPLINE_ARG_NONE) {
    bound.kind = TRAPLINE_ARG_NONE;
  } else if (plan.bound >= 0 && !describe(arguments[plan.bound], Part::kShape, bound, scratch)) {
    return TRAPLINE_NOT_APPLICABLE;
  }
  if (plan.dim >= 0 && !describe(arguments[plan.dim], Part::kShape, dim, scratch))
    return TRAPLINE_NOT_APPLICABLE;
  if (plan.also >= 0 && !describe(arguments[plan.also], part_of_also(plan), also, scratch))
    return TRAPLINE_NOT_APPLICABLE;
  return trapline_check(plan.row, &argument, plan.bound >= 0 ? &bound : nullptr,
                        plan.dim >= 0 ? &dim : nullptr, plan.also >= 0 ? &also : nullptr, &scan);
}

[[gnu::flatten]] void record_call_into(CallRecord& record, const Plan& plan, const Argument* arguments) {
  record.plan = &plan;
  record_arguments(record, plan, arguments);
  record.frames = static_cast<std::uint8_t>(capture(record.frame, kHistoryFrames));
}

bool check_call(ThreadState& state, const Plan& plan, const Argument* arguments,
                Violation& violation) noexcept {
  const BusyScope busy(state);
  take_news();
  try {
    return check_rows(state, plan, arguments, violation);
  } catch (const std::exception& error) {
    stepped_aside(plan.op.c_str(), error.what());
  } catch (...) {
    stepped_aside(plan.op.c_str(), "unknown exception");
  }
  return false;
}

void stepped_aside(const char* where, const char* why) noexcept {
  static const bool wanted = [] {
    const char* value = std::getenv("TRAPLINE_DEBUG");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  if (!wanted) return;
  const auto length = static_cast<int>(std::strcspn(why, "\n"));
  std::fprintf(stderr, "trapline: guard: %s is not checked: %.*s\n", where, length, why);
}

}  // namespace trapline::guard
