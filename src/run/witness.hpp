// A process beside the program that tells what a signal was sent to, and whether the program is stopped.
#pragma once

#include <signal.h>
#include <sys/types.h>

namespace trapline {

// Nothing in a signal says whether it was sent to Trapline's pid or to its whole process group; in the second
// case the program has it already. The witness is in the same group and session, and blocks everything: what
// it has got too was sent to more than Trapline's pid. It dies with Trapline.
class Witness {
 public:
  // `watched`: the signals that it is asked about. Where no process can be made there is no witness.
  explicit Witness(const sigset_t& watched);
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  // Whether it got this signal from the same sender as Trapline did. `at`: when Trapline read it, in
  // milliseconds of CLOCK_MONOTONIC; `sender` and `code` as in siginfo_t. Without a witness: whether the
  // signal came from the kernel, which means the terminal more often than not.
  bool saw(int signal, pid_t sender, int code, long long at);

  // From now on: a stop of Trapline's pid alone stops this process too, as one signal to the program would.
  // 0: there is none.
  void watch(pid_t program);
  // Stops Trapline until it is continued, or the program goes on or ends without it.
  void stop_along();

  pid_t pid() const { return pid_; }  // -1: there is none

 private:
  bool tell(const struct WitnessLine& line);
  void lose();

  int line_ = -1;
  pid_t pid_ = -1;
};

// CLOCK_MONOTONIC in milliseconds.
long long monotonic_ms();

}  // namespace trapline
