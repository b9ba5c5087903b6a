// The state of a process, as /proc tells it.
#pragma once

#include <sys/types.h>

namespace trapline {

// Whether a signal (not a debugger) has stopped it; false when there is none. Allocates nothing.
bool is_stopped(pid_t pid);
// Whether it runs or waits for a processor. Allocates nothing.
bool is_running(pid_t pid);

}  // namespace trapline
