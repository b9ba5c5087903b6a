// What the user asks of the guard, for every command that starts programs. A new flag is a member here, a row
// in options.cpp, and the place in python/trapline that reads its variable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/result.hpp"

namespace trapline {

// "Not given" is nullopt, always: what is not given is not set in the program's environment.
struct RunOptions {
  bool cpu = false;
  std::optional<std::int64_t> steps;
  std::optional<std::string> watch;
  std::optional<std::filesystem::path> reports;
  std::optional<std::string> on_fault;
  std::optional<double> skip_limit;  // percent of the optimizer steps
  std::optional<std::filesystem::path> quarantine;
};

// What an option takes, and where it is kept.
struct Switch {
  bool RunOptions::*member;
};
struct WholeNumberOption {
  std::optional<std::int64_t> RunOptions::*member;
  std::int64_t min, max;
};
struct NumberOption {
  std::optional<double> RunOptions::*member;
  double min, max;
};
struct WordOption {
  std::optional<std::string> RunOptions::*member;
  std::span<const std::string_view> words;
};
struct PathOption {
  std::optional<std::filesystem::path> RunOptions::*member;
};

struct RunOption {
  std::string_view flag;
  std::string_view value;     // what the help calls its value; empty: it takes none
  std::string_view variable;  // how guarded processes learn of it
  std::string_view help;
  std::variant<Switch, WholeNumberOption, NumberOption, WordOption, PathOption> kind;
};

// All of them, in the order of the help.
std::span<const RunOption> run_options();

// What is wrong with them together; nullopt when they fit.
std::optional<Error> problem_of(const RunOptions& options);

// NAME and value of the variables that tell guarded processes what was asked for.
std::vector<std::pair<std::string_view, std::string>> variables_of(const RunOptions& options);

}  // namespace trapline
