#include "cli/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "cli/cache_command.hpp"
#include "cli/check_command.hpp"
#include "cli/completions_command.hpp"
#include "cli/doctor_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/explain_command.hpp"
#include "cli/flags.hpp"
#include "cli/man_command.hpp"
#include "cli/run_command.hpp"
#include "cli/supervise_command.hpp"
#include "cli/why_command.hpp"
#include "core/suggest.hpp"
#include "core/version.hpp"
#include "report/lines.hpp"
#include "report/utf8.hpp"

namespace trapline::cli {
namespace {

constexpr auto kCommands = std::to_array<CommandRow>({
    {"run", "run a program under guard; when it fails, name the cause", "[flags] [--] PROGRAM [ARGUMENT...]",
     true, declare_run},
    {"supervise", "keep a program running; decide after each fault", "[flags] [--] PROGRAM [ARGUMENT...]",
     true, declare_supervise},
    {"explain", "name the cause of a failure from its logs", "[flags] [PATH|-]...", false, declare_explain},
    {"check labels", "compare the labels of data files with a number of classes", "[flags] FILE...", false,
     declare_check_labels},
    {"check ids", "compare the token ids of data files with a table's rows", "[flags] FILE...", false,
     declare_check_ids},
    {"check model", "compare the config, tokenizer and weights of a model folder", "[flags] DIR", false,
     declare_check_model},
    {"check dataset", "check a data folder; columns are recognised by name", "[flags] DIR...", false,
     declare_check_dataset},
    {"check finite", "look for NaN and Inf in data and weights", "[flags] FILE...", false,
     declare_check_finite},
    {"doctor", "look at the driver, torch, the guard and the environment", "[flags]", false, declare_doctor},
    {"cache", "list the guards that are kept on this machine", "", false, declare_cache_list},
    {"cache clean", "remove them", "", false, declare_cache_clean},
    {"completions", "print the completions for a shell", "bash|zsh|fish", false, declare_completions},
    {"man", "print a manual page", "[COMMAND]", false, declare_man},
    {"why", "print the page of a cause: what it means, how to fix it", "[flags] [CODE|CAUSE]...", false,
     declare_why},
});

using Words = std::vector<std::string>;

int fail(const Error& error) {
  fmt::print(stderr, "trapline: {}\n", printable(error.line()));
  return kUsageError;
}

std::string general_help() {
  constexpr int kColumn = 18;
  std::string text;
  for (const std::string& line :
       wrap("Trapline names the cause of a device-side assert or shape error in PyTorch.", help_width(),
            SIZE_MAX))
    text += line + "\n";
  text += "\nusage: trapline COMMAND [flags]\n\ncommands:\n";
  for (const CommandRow& row : kCommands)
    text += help_entry(fmt::format("  {}", row.name), row.summary, kColumn);
  text += "\nflags:\n" + help_entry("  -h, --help", "print this help, or the help of a command", kColumn) +
          help_entry("  -V, --version", "print the version", kColumn) +
          "\nexample: trapline run python train.py\n";
  return text;
}

int run_command(const CommandRow& row, Words words) {
  FlagSet flags(row.name, row.summary, row.usage);
  Words program;
  const Action action = row.declare(flags, program);
  if (row.takes_program) {
    const std::size_t own = flags.count_own(words);
    program.assign(words.begin() + static_cast<std::ptrdiff_t>(own), words.end());
    if (!program.empty() && program.front() == "--") program.erase(program.begin());
    words.resize(own);
  }
  const auto read = flags.read(words);
  if (!read) return fail(read.error());
  if (*read == FlagSet::Read::kHelpWanted) return fmt::print("{}", flags.help()), 0;
  const auto code = action();
  return code ? *code : fail(code.error());
}

// The rows whose names begin with this word: a command of several.
std::vector<const CommandRow*> family_of(const std::string& word) {
  std::vector<const CommandRow*> rows;
  for (const CommandRow& row : kCommands) {
    if (row.name.starts_with(word + " ")) rows.push_back(&row);
  }
  return rows;
}

int run_family(const std::vector<const CommandRow*>& rows, const Words& words) {
  const std::string second = words.size() > 1 ? words[1] : "";
  const std::string name = words.front() + " " + second;
  const auto row = std::ranges::find(rows, name, &CommandRow::name);
  if (row != rows.end()) return run_command(**row, Words(words.begin() + 2, words.end()));
  if (second == "-h" || second == "--help") {
    fmt::print("usage: trapline {} WHAT [flags]\n\n", words.front());
    for (const CommandRow* one : rows) fmt::print("  {:<15} {}\n", one->name, one->summary);
    fmt::print("\nmore: trapline {} --help\n", rows.front()->name);
    return 0;
  }
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const CommandRow* one : rows) names.emplace_back(one->name.substr(words.front().size() + 1));
  const auto near = nearest(second, names);
  if (second.empty()) return fail({"check what", "", fmt::format("one of {}", fmt::join(names, ", "))});
  return fail({fmt::format("`trapline {}` has no '{}'", words.front(), second), "",
               near ? fmt::format("did you mean `trapline {} {}`?", words.front(), *near)
                    : fmt::format("one of {}", fmt::join(names, ", "))});
}

Error unknown_command(const Words& words) {
  const std::string& word = words.front();
  std::vector<std::string> names;
  names.reserve(std::size(kCommands));
  for (const CommandRow& row : kCommands) names.emplace_back(row.name.substr(0, row.name.find(' ')));
  const auto near = nearest(word, names);
  if (near)
    return {fmt::format("unknown command '{}'", word), "", fmt::format("did you mean `trapline {}`?", *near)};
  if (word.starts_with("-") && words.size() > 1 && std::ranges::find(names, words[1]) != names.end()) {
    return {fmt::format("no command before '{}'", word), "",
            fmt::format("flags follow the command: trapline {} {} ...", words[1], word)};
  }
  return {fmt::format("unknown command '{}'", word), "",
          word.starts_with("-") ? "see `trapline --help`"
                                : fmt::format("to start that program write `trapline run {} ...`", word)};
}

}  // namespace

std::span<const CommandRow> commands() { return kCommands; }

int run_command_line(const Words& words) noexcept try {
  if (words.empty())
    return fail({"no command", "", "try `trapline run python train.py`, or see `trapline --help`"});
  const std::string& first = words.front();
  if (first == "help" && words.size() > 1) {
    Words page(words.begin() + 1, words.end());
    page.emplace_back("--help");
    return run_command_line(page);
  }
  if (first == "-h" || first == "--help" || first == "help") return fmt::print("{}", general_help()), 0;
  if (first == "--version" || first == "-V" || first == "version")
    return fmt::print("trapline {}\n", version_text()), 0;
  const auto row = std::ranges::find(kCommands, first, &CommandRow::name);
  const bool is_itself = row != kCommands.end() && (words.size() == 1 || words[1].starts_with('-'));
  if (const auto rows = family_of(first); !rows.empty() && !is_itself) return run_family(rows, words);
  if (row == kCommands.end()) return fail(unknown_command(words));
  return run_command(*row, Words(words.begin() + 1, words.end()));
} catch (const std::exception& error) {
  std::fprintf(stderr, "trapline: internal error: %s: please report it\n", error.what());
  return kUsageError;
}

}  // namespace trapline::cli
