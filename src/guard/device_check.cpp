#include "guard/device_check.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "guard/answer.hpp"
#include "guard/check.hpp"
#include "guard/compiled_site.hpp"
#include "guard/device_arguments.hpp"
#include "guard/device_cache.hpp"
#include "guard/device_contents.hpp"
#include "guard/device_faults.hpp"
#include "guard/device_records.hpp"
#include "guard/device_stream.hpp"
#include "guard/fork_mutex.hpp"
#include "guard/history.hpp"
#include "guard/hooks_install.hpp"
#include "guard/recycled.hpp"
#include "guard/remember.hpp"

namespace trapline::guard {
namespace {

std::atomic<std::uint64_t> g_calls{0}, g_launches{0}, g_reused{0}, g_uncopied{0};

// Zeroed memory that all launches of a stream share.
void* scratch_for(const c10::Device& device, void* stream, std::int64_t bytes) {
  if (bytes <= 0) return nullptr;
  struct All {
    ForkMutex mutex;
    std::map<std::pair<int, void*>, at::Tensor> tensors;
  };
  static auto* all = new All;  // never destroyed: the device may be gone before static objects
  const std::lock_guard<ForkMutex> lock(all->mutex);
  at::Tensor& tensor = all->tensors[{device.index(), stream}];
  if (!tensor.defined() || tensor.numel() < bytes)
    tensor = at::zeros({bytes}, at::TensorOptions().device(device).dtype(at::kByte));
  return tensor.mutable_data_ptr();
}

// The arguments of one call while its rows are applied.
struct Call {
  const Plan& plan;
  c10::ArrayRef<c10::IValue> values;
  c10::SmallVector<Argument, 8> arguments;  // by position in the schema; those that the plan needs
  c10::Device device;
  Stream stream;
  bool tracked = false;
  std::shared_ptr<const CallFacts> facts;
  Lengths lengths;  // alive until the checks are enqueued
  // What becomes of the call:
  c10::SmallVector<std::pair<std::int8_t, c10::IValue>, 2> replaced;
  bool wait = false;
  bool applied = false;  // any row
  bool violated = false;
  Violation violation;
};

const at::Tensor& checked_tensor(const Call& call, const RowPlan& row, int list_position) {
  const Argument& argument = call.arguments[row.argument];
  return argument.kind == TRAPLINE_ARG_LIST ? argument.list[list_position].toTensor() : *argument.tensor;
}

bool is_written_to(const Plan& plan, std::int8_t argument) {
  const auto* alias = plan.handle.schema().arguments()[argument].alias_info();
  return alias != nullptr && alias->isWrite();
}

void replace(Call& call, const RowPlan& row, int list_position, const at::Tensor& healed) {
  c10::IValue* out = nullptr;
  for (auto& [position, value] : call.replaced) {
    if (position == row.argument) out = &value;
  }
  if (out == nullptr) {
    const c10::IValue& old = call.values[row.argument];
    // A list is the caller's.
    call.replaced.emplace_back(row.argument, old.isList() ? c10::IValue(old.toList().copy()) : old);
    out = &call.replaced.back().second;
  }
  if (out->isList()) {
    out->toList().set(static_cast<std::size_t>(list_position), healed);
  } else {
    *out = healed;
  }
}

// A copy to heal into; undefined where there is to be none.
at::Tensor copy_for(const Call& call, const RowPlan& row, const at::Tensor& tensor, std::int32_t heal) {
  if (heal == TRAPLINE_HEAL_NONE || heal == TRAPLINE_HEAL_REPORT || is_written_to(call.plan, row.argument))
    return {};
  if (tensor.numel() * static_cast<std::int64_t>(tensor.itemsize()) > heal_cap()) {
    g_uncopied.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  try {
    return at::empty(tensor.sizes(), at::TensorOptions().dtype(tensor.scalar_type()).device(tensor.device()));
  } catch (const std::exception& error) {  // out of memory
    stepped_aside("a healed copy", error.what());
    return {};
  }
}

void fill_record(LaunchRecord& record, const Call& call, const RowPlan& row, const at::Tensor& tensor,
                 const trapline_device_check& check, bool copied) {
  record.call = call.facts;
  record.row = &row;
  record.device = call.device;
  record.tensor = TensorRef(tensor);
  record.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
  record.dtype = tensor.scalar_type();
  record.waited = check.heal == TRAPLINE_HEAL_NONE && !call.stream.capturing;
  record.contained = copied || record.waited || check.heal == TRAPLINE_HEAL_REPORT;
  record.captured = call.stream.capturing;
  record.result_storage = 0;
  record.result_shape.clear();
  if (row.row->remember != 0 && call.plan.site != nullptr) {
    record.result_shape = record.shape;  // a compiled graph does not tell where the result is
  } else if (row.row->remember != 0) {
    Result result = result_of(row, call.arguments.data());
    record.result_storage = result.storage;
    record.result_shape = std::move(result.shape);
  }
  record.order = next_order();
}

bool is_checked(const Plan& plan, std::size_t argument) {
  return std::any_of(plan.rows.begin(), plan.rows.end(),
                     [&](const RowPlan& row) { return row.argument == static_cast<int>(argument); });
}

void note_call(Call& call) {
  call.facts = call_facts(call.plan, call.values, call.tracked);
  // The memory of a compiled graph is the graph's: with CUDA graphs nothing of its pool may live on.
  if (call.stream.capturing || call.facts->replayed || call.plan.site != nullptr) return;
  auto contents = std::allocate_shared<KeptContents>(Recycled<KeptContents>());
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    const c10::IValue& value = call.values[i];
    const ArgumentRef& reference = call.facts->arguments[i];
    const bool checked = is_checked(call.plan, i);
    for (std::size_t k = 0; k < reference.tensors.size(); ++k) {
      const c10::IValue& one = reference.is_list ? value.toListRef()[k] : value;
      one.isTensor() ? contents->emplace_back(one.toTensor(), checked) : contents->emplace_back();
    }
  }
  keep_contents(call.facts, std::move(contents));
}

void launch(Call& call, const RowPlan& row, const trapline_device_check& check) {
  const at::Tensor& tensor = checked_tensor(call, row, check.list_position);
  // A mask that is broadcast to another shape takes more or less: the copy of one call says nothing of the
  // next.
  const bool reusable = call.tracked && !call.stream.capturing && check.heal != TRAPLINE_HEAL_NONE &&
                        check.heal != TRAPLINE_HEAL_REPORT && check.repeated == 0;
  if (reusable) {
    const at::Tensor known = find_healed(tensor, check, call.stream.handle, node_of_call(call.tracked));
    if (known.defined()) {
      g_reused.fetch_add(1, std::memory_order_relaxed);
      return replace(call, row, check.list_position, known);
    }
  }
  const at::Tensor healed = copy_for(call, row, tensor, check.heal);
  const int flags = call.stream.capturing ? TRAPLINE_LAUNCH_CAPTURING : 0;
  const int device = call.device.index();
  void* scratch = scratch_for(call.device, call.stream.handle, trapline_device_scratch(&check, flags));
  if (call.facts == nullptr) note_call(call);
  const std::int64_t slot = trapline_device_reserve(device, call.stream.handle, flags);
  LaunchRecord* record = launch_record(slot);
  if (record == nullptr) return;
  fill_record(*record, call, row, tensor, check, healed.defined());
  const auto users = reusable && healed.defined() ? std::make_shared<CopyUsers>() : nullptr;
  record->users = users;
  if (trapline_device_launch(device, call.stream.handle, slot, &check,
                             healed.defined() ? healed.mutable_data_ptr() : nullptr, scratch, flags) != 1)
    return;
  g_launches.fetch_add(1, std::memory_order_relaxed);
  call.wait |= record->waited;
  if (!healed.defined()) return;
  if (reusable) keep_healed(tensor, check, call.stream.handle, healed, users);
  replace(call, row, check.list_position, healed);
}

// The value of an index into nothing is worth a copy to the host: the program ends here anyway.
void violated_at_once(Call& call, const RowPlan& row) {
  if (call.stream.capturing) return;
  HostArguments host(call.plan, row, call.arguments.data());
  Violation violation;
  if (apply_row(row, host.arguments(), violation.scan) != TRAPLINE_VIOLATED) return;
  violation.row = &row;
  call.violation = violation;
  call.violated = true;
}

// Arguments in host memory beside a tensor on the device are checked here and now.
void apply_on_host(Call& call, const RowPlan& row, const Argument* arguments) {
  Violation violation;
  const int verdict = apply_row(row, arguments, violation.scan);
  call.applied |= verdict != TRAPLINE_NOT_APPLICABLE;
  if (verdict != TRAPLINE_VIOLATED) return;
  if (row.row->remember != 0) return remember(row, violation.scan, call.arguments.data());
  violation.row = &row;
  call.violation = violation;
  call.violated = true;
}

void apply_on_device(Call& call, const RowPlan& row, const Argument* arguments) {
  constexpr int kMaxChecks = kMaxList;
  trapline_device_check checks[kMaxChecks];
  int count = 0;
  trapline_scan scan;
  const int verdict = plan_row(row, arguments, checks, kMaxChecks, count, scan);
  call.applied |= verdict != TRAPLINE_PLAN_NOTHING;
  if (verdict == TRAPLINE_PLAN_VIOLATED) return violated_at_once(call, row);
  if (verdict != TRAPLINE_PLAN_CHECK) return;
  for (int i = 0; i < count && i < kMaxChecks; ++i) {
    if (!reads_also(row) ||
        call.lengths.give(checks[i], arguments[row.also], call.device, call.stream.capturing))
      launch(call, row, checks[i]);
  }
}

// A check of a compiled graph: its one tensor is on the device, and of the others the sizes are known.
void apply_site(Call& call) {
  const CompiledSite& site = *call.plan.site;
  const RowPlan& row = site.plan.rows[0];
  SiteArguments described;
  if (!describe_site(site, SiteCall(call.values), Place::kDevice, described)) return;
  constexpr int kMaxChecks = 4;
  trapline_device_check checks[kMaxChecks];
  int count = 0;
  trapline_scan scan;
  const int verdict =
      trapline_device_plan(row.row, described.part(site, 0), described.part(site, 1), described.part(site, 2),
                           described.part(site, 3), checks, kMaxChecks, &count, &scan);
  if (verdict == TRAPLINE_PLAN_VIOLATED && !call.stream.capturing) {
    const at::Tensor host = copy_to_host(call.values[0].toTensor());
    call.violation.row = &row;
    call.violated = judge_site(site, SiteCall(call.values, host), call.violation.scan) == TRAPLINE_VIOLATED;
  }
  if (verdict != TRAPLINE_PLAN_CHECK) return;
  const trapline_arg* also = described.part(site, 3);
  const bool listed = also != nullptr && also->kind == TRAPLINE_ARG_SIZES;
  const c10::ArrayRef<std::int64_t> lengths(listed ? also->tensor.sizes : nullptr,
                                            listed ? static_cast<std::size_t>(also->tensor.dim) : 0);
  for (int i = 0; i < count && i < kMaxChecks; ++i) {
    if (call.lengths.give(checks[i], lengths, call.device, call.stream.capturing))
      launch(call, row, checks[i]);
  }
}

void apply_one(Call& call, const RowPlan& row) {
  const Argument& checked = call.arguments[row.argument];
  // Nearly always it is one tensor on the device, and nothing else is read.
  const bool alone = checked.kind == TRAPLINE_ARG_TENSOR && !reads_also(row);
  if (alone && checked.tensor->defined() && !checked.tensor->device().is_cpu())
    return apply_on_device(call, row, call.arguments.data());
  c10::SmallVector<Argument, 8> arguments(call.arguments);
  SplitList split(checked);
  if (split.any_on_host()) {
    arguments[row.argument] = split.on_host();
    apply_on_host(call, row, arguments.data());
  }
  if (call.violated || !split.any_on_device()) return;
  arguments[row.argument] = split.on_device();
  if (reads_also(row)) call.lengths.prepare(arguments[row.also], call.device);
  apply_on_device(call, row, arguments.data());
}

void record_call(ThreadState& state, const Call& call) {
  if (call.plan.remember) return;
  CallRecord* record = begin_record(state);
  if (record == nullptr) return;
  record_call_into(*record, call.plan, call.arguments.data());
  commit_record(state);
}

// False: the guard has no business here.
bool find_device(Call& call) {
  for (const std::int8_t at : call.plan.needed) {
    const Argument& argument = call.arguments[at];
    if (argument.kind == TRAPLINE_ARG_TENSOR && argument.tensor->defined() &&
        !argument.tensor->device().is_cpu()) {
      call.device = argument.tensor->device();
      return true;
    }
  }
  return false;
}

void apply_rows(ThreadState& state, Call& call) {
  if (!find_device(call)) return;
  const c10::DeviceGuard current(call.device);
  // What is made here belongs to no mode of the program: it is not traced, and no subclass.
  const c10::impl::ExcludeDispatchKeyGuard no_python(c10::python_ks);
  if (!current_stream(call.device, call.stream) || !device_ready(call.device, call.stream.capturing)) return;
  g_calls.fetch_add(1, std::memory_order_relaxed);
  call.tracked = autograd_tracks(call.values);
  record_call(state, call);
  if (call.plan.site != nullptr) return apply_site(call);
  for (const RowPlan& row : call.plan.rows) {
    apply_one(call, row);
    if (call.violated) return;
  }
}

// True when the host has waited for a check of this call.
bool prepare(ThreadState& state, Call& call) noexcept {
  const BusyScope busy(state);
  try {
    call.arguments.resize(call.values.size());
    for (const std::int8_t at : call.plan.needed) call.arguments[at] = view_of(call.values[at]);
    apply_rows(state, call);
    return call.wait && trapline_device_wait_stream(call.device.index(), call.stream.handle) != 0;
  } catch (const std::exception& error) {
    stepped_aside(call.plan.op.c_str(), error.what());
  } catch (...) {
    stepped_aside(call.plan.op.c_str(), "unknown exception");
  }
  return false;
}

}  // namespace

CheckedCall check_on_device(ThreadState& state, const Plan& plan, torch::jit::Stack& stack) {
  take_news();
  raise_late(state, FaultScope::kOwn);
  const std::size_t count = plan.handle.schema().arguments().size();
  c10::IValue* values = stack.data() + (stack.size() - count);
  // Each round heals one tensor in host memory, where the handler does so (--on-fault skip).
  for (std::size_t round = 0; round < plan.rows.size() * kMaxList; ++round) {
    Call call{plan, c10::ArrayRef<c10::IValue>(values, count), {}, c10::Device(c10::DeviceType::CPU)};
    const bool waited = prepare(state, call);
    if (call.violated) {
      answer_violation(state, plan, call.violation, "", values);
      continue;
    }
    for (auto& [position, value] : call.replaced) values[position] = std::move(value);
    if (waited) raise_late(state, FaultScope::kOwn);
    return {std::move(call.facts), call.applied};
  }
  TORCH_CHECK(false, "trapline: guard: ", plan.op, ": its arguments cannot be healed: use --on-fault raise");
}
DeviceCounts device_counts() {
  return {g_calls.load(), g_launches.load(), g_reused.load(), g_uncopied.load()};
}

}  // namespace trapline::guard
