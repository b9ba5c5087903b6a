// The environment of the user's program: its own, plus what puts the guard into every Python process.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run/options.hpp"

namespace trapline {

// Where the parts of the guard are, and to whom it hands what it cannot write.
struct GuardPaths {
  std::filesystem::path python;   // the folder that holds the package `trapline`
  std::filesystem::path library;  // libtrapline.so
  // Of a C++ program with libtorch only:
  std::optional<std::filesystem::path> preload;  // libtrapline_preload.so
  std::string libtorch_folders;                  // where it looks for the guard, with colons in between
  std::string report_socket;                     // ReportSocket::address(); empty: there is none
};

// `environment` holds NAME=value entries. Entries that Trapline sets are replaced, PYTHONPATH is extended in
// front (once, even under a second `trapline run`), all others stay as they are and in their order.
std::vector<std::string> guarded_environment(std::span<const std::string> environment,
                                             const GuardPaths& paths, const RunOptions& options);

// The environment of this process.
std::vector<std::string> current_environment();

// The value of NAME in a list of NAME=value entries; nullopt when it is not there.
std::optional<std::string> find_variable(std::span<const std::string> environment, std::string_view name);

// As exec() takes arguments and variables: valid while `texts` is.
std::vector<char*> exec_list(const std::vector<std::string>& texts);

}  // namespace trapline
