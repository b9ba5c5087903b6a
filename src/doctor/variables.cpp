#include "doctor/variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/suggest.hpp"
#include "run/environment.hpp"
#include "run/options.hpp"

namespace trapline::doctor {
namespace {

enum class When : unsigned char { kSet, kOn, kIs0, kIs1, kHides };

struct Variable {
  std::string_view name;
  When when;
  Level level;
  std::string_view means, todo;
};

using enum When;
using enum Level;

constexpr auto kVariables = std::to_array<Variable>({
#define TRAPLINE_VARIABLE(name, when, level, means, todo) {name, when, level, means, todo},
#define TRAPLINE_KNOWN(name)
#include "doctor/variables.def"
#undef TRAPLINE_VARIABLE
#undef TRAPLINE_KNOWN
});

constexpr auto kKnown = std::to_array<std::string_view>({
#define TRAPLINE_VARIABLE(name, when, level, means, todo)
#define TRAPLINE_KNOWN(name) name,
#include "doctor/variables.def"
#undef TRAPLINE_VARIABLE
#undef TRAPLINE_KNOWN
});

// No GPU is left by this list: it is empty, or begins with what is no GPU.
bool hides(const std::string& value) {
  return value.empty() || value.front() == '-' || value == "none" || value == "void" || value == "NoDevFiles";
}

bool applies(When when, const std::string& value) {
  switch (when) {
    case kSet:
      return !value.empty();
    case kOn:
      return std::atoi(value.c_str()) != 0;
    case kIs0:
      return value == "0";
    case kIs1:
      return value == "1";
    case kHides:
      return hides(value);
  }
  return false;
}

std::vector<std::string> known_names() {
  std::vector<std::string> names(kKnown.begin(), kKnown.end());
  for (const Variable& row : kVariables) names.emplace_back(row.name);
  for (const RunOption& row : run_options()) names.emplace_back(row.variable);
  return names;
}

// A flag of `trapline run` that was given as a variable, with a word that the flag would refuse.
Line refused_word(const std::string& name, const std::string& value) {
  for (const RunOption& row : run_options()) {
    const auto* words = std::get_if<WordOption>(&row.kind);
    if (row.variable != name || words == nullptr || value.empty()) continue;
    if (std::ranges::find(words->words, value) == words->words.end())
      return {kProblem, name, value, "no such word: it is as if it were not set",
              fmt::format("see {} in `trapline run --help`", row.flag)};
  }
  return {};
}

}  // namespace

Lines lines_of_variables(std::span<const std::string> environment) {
  constexpr std::size_t kMaxUnknown = 8;
  Lines lines;
  std::string_view told;  // of two rows of a variable the first one that applies is enough
  for (const Variable& row : kVariables) {
    const auto value = find_variable(environment, row.name);
    if (!value || row.name == told || !applies(row.when, *value)) continue;
    told = row.name;
    lines.push_back({row.level, std::string(row.name), value->empty() ? "set, and empty" : *value,
                     std::string(row.means), std::string(row.todo)});
  }
  const std::vector<std::string> known = known_names();
  std::size_t unknown = 0;
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    if (Line refused = refused_word(name, find_variable(environment, name).value_or(""));
        !refused.topic.empty())
      lines.push_back(std::move(refused));
    if (!name.starts_with("TRAPLINE_") || name.starts_with("TRAPLINE_TEST_") ||
        std::ranges::find(known, name) != known.end() || unknown++ >= kMaxUnknown) {
      continue;
    }
    const auto near = nearest(name, known);
    lines.push_back({kProblem, name, "Trapline does not know this variable", "it has no effect",
                     near ? fmt::format("did you mean {}?", *near) : "unset it"});
  }
  return lines;
}

}  // namespace trapline::doctor
