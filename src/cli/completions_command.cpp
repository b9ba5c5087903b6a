#include "cli/completions_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <memory>

#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "core/cause.hpp"

namespace trapline::cli {
namespace {

// One flag of a command, as shells see it.
struct FlagWords {
  std::vector<std::string> names;  // "-o", "--output"
  bool takes_value = false, takes_folder = false;
  std::vector<std::string> words;  // what the value may be; empty: anything, files among it
  std::string help;
};

struct CommandWords {
  std::string name;  // "check labels"
  std::string summary;
  bool takes_program = false, takes_files = false;
  std::vector<FlagWords> flags;
  std::vector<std::string> words;  // of what belongs to no flag
};

std::vector<std::string> words_of(const Flag& flag) {
  if (const auto* rule = std::get_if<OneOf>(&flag.rule)) return rule->words;
  std::vector<std::string> words;
  if (flag.value == "CODE|CAUSE") {
    for (const CauseInfo& cause : all_causes()) words.emplace_back(cause.code);
  } else if (flag.value == "COMMAND") {
    for (const CommandRow& row : commands()) words.emplace_back(row.name.substr(0, row.name.find(' ')));
  }
  return words;
}

std::vector<CommandWords> all_commands() {
  std::vector<CommandWords> all;
  for (const CommandRow& row : commands()) {
    FlagSet flags(row.name, row.summary, row.usage);
    const std::vector<std::string> program;
    const Action unused = row.declare(flags, program);
    CommandWords command{std::string(row.name), std::string(row.summary), row.takes_program, false, {}, {}};
    for (const Flag& flag : flags.flags()) {
      if (!flag.names.starts_with('-')) {
        command.words = words_of(flag);
        command.takes_files = command.words.empty();
        continue;
      }
      FlagWords one{{}, !flag.value.empty(), flag.value == "DIR", words_of(flag), flag.help};
      for (std::size_t at = 0; at < flag.names.size();) {
        const std::size_t end = std::min(flag.names.find(',', at), flag.names.size());
        one.names.push_back(flag.names.substr(at, end - at));
        at = end + 1;
      }
      command.flags.push_back(std::move(one));
    }
    command.flags.push_back({{"-h", "--help"}, false, false, {}, "print this help"});
    all.push_back(std::move(command));
  }
  return all;
}

// In single quotes of a shell.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string first_word(const std::string& name) { return name.substr(0, name.find(' ')); }
std::string second_word(const std::string& name) {
  const auto space = name.find(' ');
  return space == std::string::npos ? std::string() : name.substr(space + 1);
}

// The names of commands, each once: "check" for all of "check ...".
std::vector<std::pair<std::string, std::string>> first_words(const std::vector<CommandWords>& all) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const CommandWords& command : all) {
    if (!names.empty() && names.back().first == first_word(command.name)) continue;
    const bool is_family = !second_word(command.name).empty();
    names.emplace_back(
        first_word(command.name),
        is_family ? "several, see trapline " + first_word(command.name) + " --help" : command.summary);
  }
  return names;
}

std::string second_words(const std::vector<CommandWords>& all, const std::string& first) {
  std::string words;
  for (const CommandWords& command : all) {
    if (first_word(command.name) != first || second_word(command.name).empty()) continue;
    words += (words.empty() ? "" : " ") + second_word(command.name);
  }
  return words;
}

// bash(1), "Programmable Completion". Needs no bash-completion package. Where COMPREPLY stays empty readline
// completes file names (-o default).
std::string bash(const std::vector<CommandWords>& all) {
  std::string names;
  for (const auto& [name, summary] : first_words(all)) names += (names.empty() ? "" : " ") + name;
  std::string out = fmt::format(R"(# bash completion of trapline; made by: trapline completions bash
_trapline() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} flags='' words='' i
  COMPREPLY=()
  # "=" is a word of its own.
  if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W {} -- "$cur")
    return
  fi
)",
                                in_quotes(names + " --help --version"));
  out += "  case $command in\n";
  for (const auto& [name, summary] : first_words(all)) {
    const std::string seconds = second_words(all, name);
    if (seconds.empty()) continue;
    // A family may be a command itself: `trapline cache`.
    out += fmt::format(
        "    {})\n"
        "      if ((COMP_CWORD == 2)) && [[ $cur != -* ]]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W {} -- \"$cur\")\n"
        "        return\n"
        "      fi\n"
        "      [[ ${{COMP_WORDS[2]}} == -* ]] || command=\"$command ${{COMP_WORDS[2]}}\" ;;\n",
        name, in_quotes(seconds));
  }
  out += "  esac\n  case $command in\n";
  for (const CommandWords& command : all) {
    std::string flags, values;
    std::string with_value;
    for (const FlagWords& flag : command.flags) {
      for (const std::string& one : flag.names) flags += (flags.empty() ? "" : " ") + one;
      if (!flag.takes_value) continue;
      const std::string names_of = fmt::format("{}", fmt::join(flag.names, "|"));
      with_value += (with_value.empty() ? "" : "|") + names_of;
      if (!flag.words.empty()) {
        values += fmt::format("        {}) mapfile -t COMPREPLY < <(compgen -W {} -- \"$cur\"); return ;;\n",
                              names_of, in_quotes(fmt::format("{}", fmt::join(flag.words, " "))));
      } else {
        values += fmt::format("        {}) return ;;\n", names_of);
      }
    }
    out += fmt::format("    {})\n", in_quotes(command.name));
    if (command.takes_program) {
      // From the program on everything is the program's own.
      out += fmt::format(
          "      for ((i = 2; i < COMP_CWORD; i++)); do\n"
          "        case ${{COMP_WORDS[i]}} in\n"
          "          --) ((COMP_CWORD == i + 1)) && mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"); return "
          ";;\n"
          "          {}) ((i++)); [[ ${{COMP_WORDS[i]}} != '=' ]] || ((i++)) ;;\n"
          "          -*) ;;\n"
          "          *) return ;;\n"
          "        esac\n"
          "      done\n",
          with_value);
    }
    if (!values.empty()) out += "      case $prev in\n" + values + "      esac\n";
    out += fmt::format("      flags={} words={} ;;\n", in_quotes(flags),
                       in_quotes(fmt::format("{}", fmt::join(command.words, " "))));
  }
  out += R"(  esac
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
  elif [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
)";
  out += "  else\n    case $command in\n";
  for (const CommandWords& command : all) {
    if (command.takes_program)
      out += fmt::format("      {}) mapfile -t COMPREPLY < <(compgen -c -- \"$cur\") ;;\n",
                         in_quotes(command.name));
  }
  return out + "    esac\n  fi\n}\ncomplete -o default -F _trapline trapline\n";
}

// zshcompsys(1): _describe and _arguments. In a specification [ ] and : have a meaning.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string zsh(const std::vector<CommandWords>& all) {
  std::string out =
      "#compdef trapline\n# made by: trapline completions zsh\n_trapline() {\n  local -a names\n  local "
      "command\n";
  out += "  if (( CURRENT == 2 )); then\n    names=(\n";
  for (const auto& [name, summary] : first_words(all))
    out += "      " + in_quotes(name + ":" + zsh_text(summary)) + "\n";
  out += "    )\n    _describe command names\n    return\n  fi\n  command=$words[2]\n  case $command in\n";
  for (const auto& [name, summary] : first_words(all)) {
    if (second_words(all, name).empty()) continue;
    out += fmt::format(
        "    {})\n      if (( CURRENT == 3 )) && [[ $words[3] != -* ]]; then\n        names=(\n", name);
    for (const CommandWords& command : all) {
      if (first_word(command.name) == name && !second_word(command.name).empty())
        out += "          " + in_quotes(second_word(command.name) + ":" + zsh_text(command.summary)) + "\n";
    }
    out +=
        "        )\n        _describe command names\n        return\n      fi\n"
        "      [[ $words[3] == -* ]] || { command=\"$command $words[3]\"; shift words; (( CURRENT-- )) } "
        ";;\n";
  }
  out += "  esac\n  shift words; (( CURRENT-- ))\n  case $command in\n";
  for (const CommandWords& command : all) {
    out += fmt::format("    {})\n      _arguments -S", in_quotes(command.name));
    for (const FlagWords& flag : command.flags) {
      for (const std::string& name : flag.names) {
        std::string spec =
            name + (flag.takes_value && name.starts_with("--") ? "=" : "") + "[" + zsh_text(flag.help) + "]";
        if (flag.takes_value) {
          const std::string action = !flag.words.empty() ? fmt::format("({})", fmt::join(flag.words, " "))
                                     : flag.takes_folder ? "_files -/"
                                                         : "_files";
          spec += ":value:" + action;
        }
        out += " \\\n        " + in_quotes(spec);
      }
    }
    if (command.takes_program) out += " \\\n        '*::program:_normal'";
    if (!command.words.empty())
      out += " \\\n        " + in_quotes(fmt::format("*:word:({})", fmt::join(command.words, " ")));
    if (command.takes_files) out += " \\\n        '*:file:_files'";
    out += " ;;\n";
  }
  return out + "  esac\n}\n_trapline \"$@\"\n";
}

// fish, "complete".
std::string fish(const std::vector<CommandWords>& all) {
  std::string out = "# made by: trapline completions fish\n";
  for (const auto& [name, summary] : first_words(all)) {
    out += fmt::format("complete -c trapline -n __fish_use_subcommand -f -a {} -d {}\n", name,
                       in_quotes(summary));
  }
  for (const CommandWords& command : all) {
    const std::string first = first_word(command.name), second = second_word(command.name);
    std::string condition = fmt::format("__fish_seen_subcommand_from {}", first);
    if (!second.empty()) {
      out += fmt::format("complete -c trapline -n {} -f -a {} -d {}\n",
                         in_quotes(fmt::format("{}; and not __fish_seen_subcommand_from {}", condition,
                                               second_words(all, first))),
                         second, in_quotes(command.summary));
      condition += fmt::format("; and __fish_seen_subcommand_from {}", second);
    }
    for (const FlagWords& flag : command.flags) {
      out += fmt::format("complete -c trapline -n {}", in_quotes(condition));
      for (const std::string& name : flag.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!flag.words.empty()) {
        out += fmt::format(" -x -a {}", in_quotes(fmt::format("{}", fmt::join(flag.words, " "))));
      } else if (flag.takes_value) {
        out += " -r";
      }
      out += fmt::format(" -d {}\n", in_quotes(flag.help));
    }
    if (!command.words.empty()) {
      out += fmt::format("complete -c trapline -n {} -f -a {}\n", in_quotes(condition),
                         in_quotes(fmt::format("{}", fmt::join(command.words, " "))));
    }
    if (command.takes_program)
      out +=
          fmt::format("complete -c trapline -n {} -a '(__fish_complete_subcommand)'\n", in_quotes(condition));
  }
  return out;
}

Result<int> execute(const std::string& shell) {
  if (shell.empty()) return Error{"no shell", "", "name one: trapline completions bash"};
  const std::vector<CommandWords> all = all_commands();
  write_all(STDOUT_FILENO, shell == "bash" ? bash(all) : shell == "zsh" ? zsh(all) : fish(all));
  return 0;
}

}  // namespace

Action declare_completions(FlagSet& flags, const std::vector<std::string>&) {
  auto shell = std::make_shared<std::string>();
  flags.add({"shell", "SHELL", shell.get(), "bash, zsh or fish", OneOf{{"bash", "zsh", "fish"}}});
  flags.set_footer(
      "bash: source <(trapline completions bash), in ~/.bashrc. zsh: into a folder of $fpath, as _trapline. "
      "fish: trapline completions fish > ~/.config/fish/completions/trapline.fish");
  return [shell] { return execute(*shell); };
}

}  // namespace trapline::cli
