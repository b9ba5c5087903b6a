// How a program ended.
#pragma once

namespace trapline {

struct ExitStatus {
  int exit_code = 0;  // of the program; 128 + N when signal N killed it: what a shell reports
  int signal = 0;     // 0: it exited by itself
  bool core_dumped = false;
};

// What waitpid() says of a program that has ended.
ExitStatus exit_status_of(int wait_status);

}  // namespace trapline
