// The processes below this one: found, signalled, and none left behind.
#pragma once

#include <sys/types.h>

#include <span>
#include <string_view>
#include <vector>

namespace trapline::supervise {

// Orphans of this process's descendants become its own children, so that they can be found and ended.
void become_subreaper();

// All descendants of `root`, without the trees below `except`. Zombies are left out.
std::vector<pid_t> descendants(pid_t root, std::span<const pid_t> except);

void signal_all(std::span<const pid_t> pids, int signal);

// All processes, besides `except`, whose environment holds this "NAME=value": also those that have left their
// parents. Those of other users cannot be seen.
std::vector<pid_t> processes_with(std::string_view variable, std::span<const pid_t> except);

}  // namespace trapline::supervise
