// What the checks on the device found, from the moment that the host learns of it until it is raised.
#pragma once

#include <cstdint>
#include <optional>

#include "guard/device_contents.hpp"
#include "guard/device_records.hpp"
#include "guard/state.hpp"
#include "trapline/device.h"

namespace trapline::guard {

struct LateFault {
  LaunchRecord record;
  trapline_scan scan;
  std::shared_ptr<const KeptContents> contents;  // of the call's tensors (device_contents.hpp)
  bool again = false;                            // the program was told before, and uses what came of it
  bool replayed = false;  // again, by a backward pass that was under way when it was told
};

enum class FaultScope {
  kOwn,  // this thread's, or the one's whose calls autograd replays here; at guarded calls
  kAny   // where results are read
};

// Raises the fault that was launched first, if there is one, as raise_violation does. One load when nothing
// is there. Without effect while this thread's stream captures.
void raise_late(ThreadState& state, FaultScope whose);

// Takes the fault that was launched first; the caller has to make it known.
std::optional<LateFault> take_fault(FaultScope whose);

// The handler has dealt with it (--on-fault skip): what came of it is no news.
void fault_dealt_with(const LateFault& fault);

// A fault that the program was told of, and that autograd's graph says is behind the tensor: a value made
// of harmless numbers is about to be read, or to be the root of a backward pass.
std::optional<LateFault> fault_behind(const at::Tensor& tensor);

// False: there is none behind any tensor. One load.
bool any_told();

// Raises that.
void raise_again(ThreadState& state, const at::Tensor& tensor);

// After an operation failed: a device-side assert kills every later call with an error that names
// nothing. Raises the fault in its place, or returns.
void raise_instead(ThreadState& state);

// The operation itself refused the call for another reason: what its checks find is not reported.
void disown(const CallFacts& call);

// Drops what was found and not raised: the guard is going.
void forget_faults();

}  // namespace trapline::guard
