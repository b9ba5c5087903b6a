// A small process beside the supervisor that ends the program when the supervisor is killed: nobody else
// would.
#pragma once

#include <sys/types.h>

#include <string>

#include "supervise/spawn.hpp"

namespace trapline::supervise {

// It holds the other end of a pipe and sleeps. When the pipe is closed without a word, the supervisor is
// dead: it sends SIGTERM to every process whose environment holds `variable`, and after `grace` seconds
// SIGKILL.
class LastWatch {
 public:
  // To be called before there are threads. Where no process can be made there is no such watch.
  LastWatch(const std::string& variable, double grace);
  // Says that all is well; the process ends.
  ~LastWatch();
  LastWatch(const LastWatch&) = delete;
  LastWatch& operator=(const LastWatch&) = delete;

  pid_t pid() const { return pid_; }

 private:
  Descriptor line_;
  pid_t pid_ = -1;
};

}  // namespace trapline::supervise
