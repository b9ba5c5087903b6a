// What the user asks of a supervisor: flags and a policy file say the same things, and the flags win.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "run/options.hpp"
#include "supervise/decide.hpp"
#include "supervise/sockets.hpp"

namespace trapline::supervise {

// As given; nullopt and empty: not given.
struct Wishes {
  std::vector<std::string> listen;
  std::optional<std::string> status, probe;
  std::optional<double> probe_interval, probe_timeout, stall, grace, window, delay, max_delay;
  std::optional<std::int64_t> probe_failures, restarts;
  bool standby = false;
  std::optional<std::string> replace;  // tree or process
  std::map<Cause, Action> decisions;   // a policy file's only
};

struct Settings {
  std::vector<Address> listen;
  std::optional<Address> status;
  std::optional<Url> probe;
  double probe_interval = 1;  // seconds
  double probe_timeout = 2;
  std::int64_t probe_failures = 3;
  std::optional<double> stall;  // seconds
  double grace = 10;            // seconds between SIGTERM and SIGKILL
  bool standby = false;
  // Of a tree only the process that has lost its context is ended: its parent starts another.
  bool replaces_process = false;
  Policy policy;
};

// Adds to `wishes` what they lack and the TOML file says. An error names file and line.
std::optional<Error> add_policy_file(const std::filesystem::path& file, Wishes& wishes);

Result<Settings> settings_of(const Wishes& wishes);

}  // namespace trapline::supervise
