// What a hook has to know before it does anything: is the guard on, and is this thread inside it already.
#pragma once

#include <atomic>

namespace trapline::guard {

struct Ring;

struct ThreadState {
  bool busy = false;     // describing, checking, or in the Python handler: nothing is checked or recorded
  int depth = 0;         // inside a guarded operation that was checked: what it calls is not checked again
  Ring* ring = nullptr;  // the thread's last calls; made at its first guarded call
};

inline thread_local ThreadState t_state;
inline std::atomic<bool> g_enabled{false};

inline bool enabled() { return g_enabled.load(std::memory_order_relaxed); }
inline bool outermost(const ThreadState& state) { return !state.busy && state.depth == 0; }

class BusyScope {
 public:
  explicit BusyScope(ThreadState& state) : state_(state) { state_.busy = true; }
  ~BusyScope() { state_.busy = false; }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  ThreadState& state_;
};

// Entered only around an operation whose check ran: an operation on a nested tensor calls the dense one, and
// that is the call to be checked. `checked`: whether a row applied; else what the operation calls is checked.
class DepthScope {
 public:
  explicit DepthScope(ThreadState& state, bool checked = true) : state_(state), by_(checked ? 1 : 0) {
    state_.depth += by_;
  }
  ~DepthScope() { state_.depth -= by_; }
  DepthScope(const DepthScope&) = delete;
  DepthScope& operator=(const DepthScope&) = delete;

 private:
  ThreadState& state_;
  const int by_;
};

}  // namespace trapline::guard
