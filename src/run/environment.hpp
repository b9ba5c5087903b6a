// The environment of the user's program: its own, plus what puts the guard into every Python process.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trapline {

struct GuardSettings {
  std::filesystem::path python;   // the folder that holds the package `trapline`
  std::filesystem::path library;  // libtrapline.so
  std::filesystem::path reports;  // where guarded processes write
  bool cpu = false;
  std::optional<long> steps;
  bool verbose = false;
  std::string on_fault = "raise";    // or "skip" or "stop"
  std::optional<double> skip_limit;  // percent of the optimizer steps
  std::filesystem::path preload;     // libtrapline_preload.so, for a C++ program with libtorch; else empty
  std::string libtorch_folders;      // where it looks for the guard, with colons in between
  std::filesystem::path quarantine;  // absolute; empty: no sample is left out or written down
  std::string watch{};               // what `--watch` names: "nan"; empty: nothing
};

// `environment` holds NAME=value entries. Entries that Trapline sets are replaced, PYTHONPATH is extended in
// front (once, even under a second `trapline run`), all others stay as they are and in their order.
std::vector<std::string> guarded_environment(std::span<const std::string> environment,
                                             const GuardSettings& settings);

// The environment of this process.
std::vector<std::string> current_environment();

// The value of NAME in a list of NAME=value entries; nullopt when it is not there.
std::optional<std::string> find_variable(std::span<const std::string> environment, std::string_view name);

}  // namespace trapline
