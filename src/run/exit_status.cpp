#include "run/exit_status.hpp"

#include <sys/wait.h>

namespace trapline {

ExitStatus exit_status_of(int wait_status) {
  ExitStatus out;
  if (WIFSIGNALED(wait_status)) {
    out.signal = WTERMSIG(wait_status);
    out.exit_code = 128 + out.signal;
    out.core_dumped = WCOREDUMP(wait_status);
  } else {
    out.exit_code = WEXITSTATUS(wait_status);
  }
  return out;
}

}  // namespace trapline
