// Signals that are sent to Trapline and meant for the program.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>

namespace trapline {

// While it lives, SIGINT and SIGQUIT from the terminal are left to the program, which gets them from the
// terminal too, and signals that somebody sends to Trapline alone are passed on to the program. It may
// outlive many programs, one after another; there is one of it at a time. In the end it puts everything back.
class SignalForwarding {
 public:
  SignalForwarding();
  ~SignalForwarding();
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

  // From now on signals go to this process; 0: there is none, and what comes is held for the next one. The
  // caller has blocked all signals, or one of them could slip in between.
  void set_target(pid_t program);
  // Whether this signal came while there was no process to pass it to.
  bool holds(int signal) const;

 private:
  static constexpr std::array kSignals{SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH};

  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace trapline
