// Signals that are sent to Trapline and meant for the program.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <deque>
#include <memory>

#include "run/witness.hpp"

namespace trapline {

// While it lives, no signal but SIGKILL and SIGSTOP acts on Trapline: the program gets each one as often as
// it would without Trapline. What was sent to Trapline's pid is passed on; what went to the whole process
// group or came from the terminal the program has got itself (`Witness` tells which). It may outlive many
// programs, one after another; there is one of it at a time, in a process with one thread. In the end it puts
// everything back.
class SignalForwarding {
 public:
  SignalForwarding();
  ~SignalForwarding();
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

  // The mask of signals that Trapline was started with, and programs are to be started with.
  const sigset_t& mask_before() const { return before_; }

  // From now on signals are meant for this process; 0: there is none, and what comes waits for the next one.
  void set_target(pid_t program);
  // Sleeps until the program has changed its state, or for a moment, and passes on what came meanwhile.
  void pass_on();
  // Stops Trapline because the program has stopped; returns when it goes on.
  void stop_along();
  // Whether this signal waits for a process that it can be passed to.
  bool holds(int signal) const;

 private:
  struct Came {
    int signal = 0;
    int code = 0;
    pid_t sender = 0;
    sigval value{};
    long long at = 0;  // milliseconds
  };
  void take_signals();
  void deliver_due();

  sigset_t before_{};
  int signals_ = -1;
  pid_t program_ = 0;
  std::deque<Came> came_;
  long long delay_ = 0;  // of the signal before, while others wait behind it: these keep their distance
  std::unique_ptr<Witness> witness_;
};

}  // namespace trapline
