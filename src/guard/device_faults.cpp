#include "guard/device_faults.hpp"

#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <mutex>

#include "guard/answer.hpp"
#include "guard/check.hpp"
#include "guard/device_cache.hpp"
#include "guard/device_contents.hpp"
#include "guard/device_stream.hpp"
#include "guard/fork_mutex.hpp"
#include "guard/remember.hpp"

namespace trapline::guard {
namespace {

constexpr std::size_t kMaxTold = 64;
constexpr std::uint64_t kNotRaised = std::numeric_limits<std::uint64_t>::max();

// A bad tensor that is known: neither another operation that was launched with it before the program could
// learn of it, nor the backward call of the same one is a second fault.
struct ReportedFault {
  TensorRef tensor;
  const trapline_contract* row;
  std::int64_t lo, hi;
  std::uint64_t order, raised;  // of its launch; the last launch before it was raised
  bool dealt_with = false;      // the handler leaves out what would have come of it
  LateFault fault;              // to tell it again
  std::vector<NodeName> also;   // calls that were given the same tensor, and are not reported by themselves
};

struct FaultStore {
  ForkMutex mutex;
  std::deque<LateFault> waiting;   // by order of launch
  std::deque<ReportedFault> told;  // newest first
};

FaultStore& fault_store() {
  static auto* all = new FaultStore;  // never destroyed: threads may outlive static destruction
  return *all;
}

// fault_store().waiting is not empty, or reports are on their way into it.
std::atomic<bool> g_waiting{false};

// One of fault_store().told was raised.
std::atomic<bool> g_told{false};

ReportedFault* told_of(FaultStore& all, const LateFault& fault) {
  if (fault.record.captured || fault.record.waited) return nullptr;
  const auto found = std::find_if(all.told.begin(), all.told.end(), [&](const ReportedFault& told) {
    return told.tensor.same_as(fault.record.tensor) &&
           told.row->predicate == fault.record.row->row->predicate && told.lo == fault.scan.lo &&
           told.hi == fault.scan.hi &&
           (fault.record.order <= told.raised || (told.dealt_with && fault.record.call->replayed));
  });
  return found == all.told.end() ? nullptr : &*found;
}

void add_nodes(const LaunchRecord& record, std::vector<NodeName>& out) {
  if (record.call->node) out.push_back(*record.call->node);
  if (record.users == nullptr) return;
  const std::lock_guard<std::mutex> lock(record.users->mutex);
  out.insert(out.end(), record.users->nodes.begin(), record.users->nodes.end());
}

// The tensor was bad in the forward call, and the program was told in the middle of the backward pass: what
// the pass makes of it is that fault's, and the step that follows must not be taken.
const ReportedFault* replay_of(const FaultStore& all, const LateFault& fault) {
  if (!fault.record.call->replayed || fault.record.captured) return nullptr;
  const auto found = std::find_if(all.told.begin(), all.told.end(), [&](const ReportedFault& told) {
    return told.tensor.same_as(fault.record.tensor) && told.lo == fault.scan.lo && told.hi == fault.scan.hi &&
           !told.fault.record.call->replayed;
  });
  return found == all.told.end() ? nullptr : &*found;
}

void insert(FaultStore& all, LateFault fault) {
  const auto after = std::find_if(all.waiting.begin(), all.waiting.end(), [&](const LateFault& other) {
    return other.record.order > fault.record.order;
  });
  all.waiting.insert(after, std::move(fault));
  g_waiting.store(true);
}

void add_fault(FaultStore& all, LateFault fault) {
  if (ReportedFault* told = told_of(all, fault)) return add_nodes(fault.record, told->also);
  if (const ReportedFault* told = replay_of(all, fault)) {
    fault = told->fault;
    fault.again = fault.replayed = true;
    return insert(all, std::move(fault));
  }
  all.told.push_front({fault.record.tensor,
                       fault.record.row->row,
                       fault.scan.lo,
                       fault.scan.hi,
                       fault.record.order,
                       kNotRaised,
                       false,
                       fault,
                       {}});
  fault.contents = contents_of(*fault.record.call);
  if (all.told.size() > kMaxTold) all.told.pop_back();
  insert(all, std::move(fault));
}

void collect(FaultStore& all) {
  constexpr int kBatch = 16;
  trapline_device_report reports[kBatch];
  while (trapline_device_pending() != 0) {
    g_waiting.store(true);  // before the reports leave the device's memory: a thread that reads must wait
    const int count = trapline_device_poll(reports, kBatch);
    if (count <= 0) break;
    for (int i = 0; i < count; ++i) {
      const LaunchRecord* record = launch_record(reports[i].slot);
      if (record == nullptr || record->call == nullptr || record->call->refused) continue;
      if (record->row->row->remember != 0) {
        remember_late(*record, reports[i].scan);
      } else {
        add_fault(all, {*record, reports[i].scan, {}});
      }
    }
  }
  g_waiting.store(!all.waiting.empty());
}

// `replayed`: the thread, as autograd numbers them, whose calls this one replays; 0 outside of a backward
// pass.
bool belongs(const LateFault& fault, FaultScope whose, std::uint64_t replayed) {
  const CallFacts& call = *fault.record.call;
  // A thread of autograd has no program of its own that could come by.
  return whose == FaultScope::kAny || call.backward || call.thread.id == this_thread().id ||
         (replayed != 0 && call.autograd_thread == replayed);
}

std::uint64_t replayed_thread() {
  const auto node = torch::autograd::get_current_node();
  return node == nullptr ? 0 : node->thread_id();
}

// Returns when the handler has dealt with the fault.
void tell(ThreadState& state, const LateFault& fault) {
  answer_fault(state, fault);
  fault_dealt_with(fault);
}

// In this order: a report is in `waiting`, or announced, before it is no longer pending.
bool nothing_there() { return trapline_device_pending() == 0 && !g_waiting.load(); }

std::optional<LateFault> take_first(FaultScope whose) {
  FaultStore& all = fault_store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  collect(all);
  const auto refused = [](const LateFault& fault) { return fault.record.call->refused.load(); };
  all.waiting.erase(std::remove_if(all.waiting.begin(), all.waiting.end(), refused), all.waiting.end());
  const std::uint64_t replayed = replayed_thread();
  const auto found = std::find_if(all.waiting.begin(), all.waiting.end(),
                                  [&](const LateFault& fault) { return belongs(fault, whose, replayed); });
  if (found == all.waiting.end()) {
    g_waiting.store(!all.waiting.empty());
    return std::nullopt;
  }
  LateFault fault = std::move(*found);
  all.waiting.erase(found);
  g_waiting.store(!all.waiting.empty());
  for (ReportedFault& told : all.told) {
    if (told.order == fault.record.order) told.raised = current_order();
  }
  g_told.store(true);
  return fault;
}

}  // namespace

std::optional<LateFault> take_fault(FaultScope whose) {
  std::optional<LateFault> fault = take_first(whose);
  if (fault) forget_healed(fault->record.tensor);  // without the lock: it frees memory of the device
  return fault;
}

void fault_dealt_with(const LateFault& fault) {
  FaultStore& all = fault_store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  for (ReportedFault& told : all.told) {
    if (told.order == fault.record.order) told.dealt_with = true;
  }
}

std::optional<LateFault> fault_behind(const at::Tensor& tensor) {
  if (!g_told.load(std::memory_order_relaxed) || !tensor.defined() || !tensor.requires_grad()) return {};
  FaultStore& all = fault_store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  for (const ReportedFault& told : all.told) {
    if (told.raised == kNotRaised || told.dealt_with) continue;
    std::vector<NodeName> nodes = told.also;
    add_nodes(told.fault.record, nodes);
    if (!is_behind(tensor, nodes)) continue;
    LateFault fault = told.fault;
    fault.again = true;
    return fault;
  }
  return {};
}

bool any_told() { return g_told.load(std::memory_order_relaxed); }

void raise_again(ThreadState& state, const at::Tensor& tensor) {
  if (!g_told.load(std::memory_order_relaxed)) return;
  const auto known = [&]() -> std::optional<LateFault> {
    const BusyScope busy(state);
    try {
      if (!is_capturing()) return fault_behind(tensor);
    } catch (const std::exception& error) {
      stepped_aside("a fault that was told", error.what());
    }
    return {};
  };
  if (const auto fault = known()) answer_fault(state, *fault);
}

void raise_late(ThreadState& state, FaultScope whose) {
  if (!device_used() || nothing_there()) return;
  const auto next = [&]() -> std::optional<LateFault> {
    const BusyScope busy(state);
    try {
      if (!is_capturing()) return take_fault(whose);
    } catch (const std::exception& error) {
      stepped_aside("a report of the device", error.what());
    }
    return std::nullopt;
  };
  while (const auto fault = next()) tell(state, *fault);
}

void raise_instead(ThreadState& state) {
  if (!device_used()) return;
  const auto next = [&]() -> std::optional<LateFault> {
    const BusyScope busy(state);
    try {
      return take_fault(FaultScope::kAny);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  };
  while (const auto fault = next()) tell(state, *fault);
}

void disown(const CallFacts& call) {
  call.refused = true;
  forget_healed();  // the next operation on the same tensor has to be checked
}

void forget_faults() {
  FaultStore& all = fault_store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  collect(all);
  all.waiting.clear();
  all.told.clear();
  g_waiting.store(false);
  g_told.store(false);
}

}  // namespace trapline::guard
