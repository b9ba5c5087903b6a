// A program that Trapline started: it can be watched, signalled, waited for, and started again.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "run/exit_status.hpp"
#include "run/forwarding.hpp"

namespace trapline {

// It shares Trapline's terminal, descriptors 0, 1 and 2 and process group; program.hpp says why. It is killed
// when Trapline is.
class Child {
 public:
  // `arguments` is not empty. Signals that reach Trapline are passed on while `forwarding` is there.
  Child(std::vector<std::string> arguments, std::vector<std::string> environment,
        SignalForwarding* forwarding = nullptr);
  // A program that is still running is killed: nobody could wait for it any more.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The first time, and again after each end. An error says why nothing runs. The program starts with the
  // signal mask and dispositions of the caller.
  std::optional<Error> start();

  // How it ended; nullopt while it runs or is stopped, and before the first start.
  std::optional<ExitStatus> poll();
  // The same, but waits for the end of the program itself; processes that it left behind are not waited for.
  std::optional<ExitStatus> wait();

  // False when it does not run.
  bool signal(int number) const;
  bool is_running() const { return pid_ != 0; }  // as of the last poll()
  pid_t pid() const { return pid_; }             // 0 when it does not run

 private:
  void collect();

  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
  SignalForwarding* forwarding_;
  pid_t pid_ = 0;
  std::optional<ExitStatus> status_;  // of the last time that it ran
};

}  // namespace trapline
