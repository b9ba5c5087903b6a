#include "log/events/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "log/clean/text.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMaxCommands = 16;
constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxWords = 64;
constexpr std::size_t kMaxCommand = 600;  // longer ones end in "..." behind the script
constexpr std::string_view kRest = "...";

using Words = std::vector<std::string>;

bool is_plain(std::string_view word) {
  // No quotes, no blanks, nothing that a shell expands. A leading "~" or "=" or "-" is looked at by the
  // caller.
  return !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 ||
                        std::string_view("_./:=,@%+-").find(static_cast<char>(c)) != std::string_view::npos);
  });
}

std::string_view base_of(std::string_view path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_python(std::string_view word) {
  std::string_view name = base_of(word);
  if (!name.starts_with("python")) return false;
  name.remove_prefix(6);
  return std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

// What starts Python on the given script by itself.
bool is_launcher(std::string_view word) {
  return is_one_of(base_of(word), {"torchrun", "accelerate", "deepspeed"});
}

// What starts any program, on several machines or in several processes.
bool is_spawner(std::string_view word) { return is_one_of(base_of(word), {"srun", "mpirun", "mpiexec"}); }

// Variables that only choose devices and ranks. Others, such as LD_PRELOAD, decide which code runs.
bool is_harmless_variable(std::string_view word) {
  const std::string_view name = word.substr(0, std::min(word.find('='), word.size()));
  return is_one_of(name,
                   {"CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER", "OMP_NUM_THREADS",
                    "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                    "NCCL_DEBUG", "TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE", "WANDB_MODE"});
}

bool is_variable(std::string_view word) {
  const auto equals = word.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         std::ranges::all_of(word.substr(0, equals), [](unsigned char c) {
           return (std::isupper(c) != 0) || std::isdigit(c) != 0 || c == '_';
         });
}

bool is_script(std::string_view word) {
  return word.ends_with(".py") && word.size() > 3 && word.front() != '-' &&
         word.find('=') == std::string_view::npos;
}

// Where the shell goes on with something else: | & ; > 2> <
bool ends_command(std::string_view word) {
  if (word.size() > 1 && std::isdigit(static_cast<unsigned char>(word.front())) != 0) word.remove_prefix(1);
  return word.front() == '>' || word.front() == '<' || word == "|" || word.starts_with("|") || word == "&" ||
         word.starts_with("&>") || word == "&&" || word == ";";
}

Words split(std::string_view text) {
  Words words;
  for (std::size_t at = text.find_first_not_of(" \t"); at < text.size() && words.size() <= kMaxWords;) {
    const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = std::min(text.find_first_not_of(" \t", end), text.size());
  }
  return words;
}

// A Python list of words, as a message shows it: ['/usr/bin/python', 'train.py'].
Words split_list(std::string_view text) {
  Words words;
  while (text.starts_with('\'') && words.size() <= kMaxWords) {
    const std::size_t end = text.find('\'', 1);
    if (end == std::string_view::npos) return {};
    words.emplace_back(text.substr(1, end - 1));
    text.remove_prefix(end + 1);
    if (text.starts_with("]")) return words;
    if (!text.starts_with(", ")) return {};
    text.remove_prefix(2);
  }
  return {};
}

// Reads the words of a command in their grammar: [VAR=x ...] [nohup] [srun OPTION...] PROGRAM [OPTION...]
// SCRIPT [ARGUMENT...]
class Grammar {
 public:
  explicit Grammar(const Words& words) : words_(words) {}

  bool read() {
    while (at_ < words_.size() && is_variable(words_[at_])) {
      if (!is_plain(words_[at_]) || !is_harmless_variable(words_[at_])) return false;
      take();
    }
    while (is_one_of(word(), {"nohup", "exec", "time", "setsid"})) ++at_;
    if (is_spawner(word())) {
      if (!take_options(true)) return false;
    }
    if (is_python(word())) {
      if (!take_plain()) return false;
      while (is_one_of(word(), {"-u", "-B", "-O", "-OO", "-s"})) take();
      if (word() == "-m") {
        // Only modules that start the script which follows: pip is a module, too.
        if (!is_one_of(next(), {"torch.distributed.run", "torch.distributed.launch",
                                "accelerate.commands.launch", "deepspeed.launcher.launch"}))
          return false;
        take();
        take();
        if (!take_options(false)) return false;
      }
    } else if (is_launcher(word())) {
      const bool is_accelerate = base_of(word()) == "accelerate";
      if (!take_plain() || (is_accelerate && word() != "launch")) return false;
      if (!take_options(false)) return false;
    } else {
      return false;
    }
    if (!is_script(word()) || !take_plain()) return false;
    take_arguments();
    return true;
  }

  std::string text() const { return fmt::format("{}", fmt::join(taken_, " ")); }

 private:
  std::string_view word() const {
    return at_ < words_.size() ? std::string_view(words_[at_]) : std::string_view();
  }
  std::string_view next() const {
    return at_ + 1 < words_.size() ? std::string_view(words_[at_ + 1]) : std::string_view();
  }
  void take() { taken_.push_back(words_[at_++]); }
  bool take_plain() {
    if (!is_plain(word())) return false;
    take();
    return true;
  }

  // Up to the script, or with `of_spawner` up to the program. An option with a path may name code to run
  // (srun --prolog), and some say that no Python is to be started at all.
  bool take_options(bool of_spawner) {
    if (of_spawner && !take_plain()) return false;
    while (at_ < words_.size() &&
           !(of_spawner ? is_python(word()) || is_launcher(word()) : is_script(word()))) {
      const std::string_view option = word();
      const bool names_code =
          option.find("no-python") != std::string_view::npos ||
          option.find("no_python") != std::string_view::npos || option == "-m" || option == "--module" ||
          (of_spawner && option.find('/') != std::string_view::npos) ||
          option.find("LD_") != std::string_view::npos || option.find("PYTHON") != std::string_view::npos;
      if (names_code || !take_plain()) return false;
    }
    return at_ < words_.size();
  }

  void take_arguments() {
    std::size_t length = text().size();
    while (at_ < words_.size() && !ends_command(word())) {
      length += word().size() + 1;
      if (!is_plain(word()) || length > kMaxCommand || taken_.size() >= kMaxWords) {
        taken_.emplace_back(kRest);
        return;
      }
      take();
    }
  }

  const Words& words_;
  std::size_t at_ = 0;
  Words taken_;
};

std::optional<std::string> command_of_words(const Words& words) {
  if (words.empty()) return std::nullopt;
  Grammar grammar(words);
  return grammar.read() ? std::optional(grammar.text()) : std::nullopt;
}

// What stands before a command, at the beginning of a line. Each row names who prints it.
constexpr auto kIntroductions = std::to_array<std::string_view>({
    "+ ",   // set -x: bash(1), PS4; the first character is repeated for each level
    "++ ",  // the same, one level down
    "Command: ", "Command being run: ", "Running command: ", "Running: ", "Executing: ",  // wrappers
    "CMD ",  // a Dockerfile's own line, as docker build prints it
});

// bash's default for others than root is "\s-\v\$ ", Debian's "\u@\h:\w\$ "; root's ends in "# ".
std::string_view after_prompt(std::string_view text) {
  const std::size_t end = std::min(text.size(), std::size_t{200});
  for (std::size_t at = 0; at + 1 < end; ++at) {
    const bool is_sign = (text[at] == '$' || text[at] == '#') && text[at + 1] == ' ';
    if (!is_sign) continue;
    const std::string_view before = text.substr(0, at);
    if (before.empty() && text[at] == '$') return text.substr(2);
    // user@host:folder$
    const auto host = before.find('@');
    if (host != std::string_view::npos && host > 0 && before.find(':', host) != std::string_view::npos)
      return text.substr(at + 2);
    return {};
  }
  return {};
}

// A line that is nothing but a command, as a script echoes it. "python train.py does not work" is prose.
std::optional<std::string> echoed_command(std::string_view text) {
  const Words words = split(text);
  const auto script = std::ranges::find_if(words, is_script);
  const bool is_prose =
      script != words.end() && script + 1 != words.end() &&
      std::ranges::all_of(*(script + 1), [](unsigned char c) { return std::isalpha(c) != 0; });
  return is_prose ? std::nullopt : command_of_words(words);
}

}  // namespace

std::optional<std::string> safe_command(std::string_view text) {
  return text.size() > kMaxLine ? std::nullopt : command_of_words(split(text));
}

void CommandFinder::line(std::string_view text) {
  if (commands_.size() >= kMaxCommands || text.size() > kMaxLine ||
      text.find(".py") == std::string_view::npos)
    return;
  text = trim(text);
  std::optional<std::string> found;
  // subprocess.CalledProcessError (CPython, Lib/subprocess.py), as accelerate's launcher and others end with.
  constexpr std::string_view kFailed = "Command '[";
  constexpr std::string_view kDeepSpeed = "cmd = ";  // deepspeed/launcher/runner.py
  const std::size_t failed = text.find(kFailed), launched = text.find(kDeepSpeed);
  if (failed != std::string_view::npos) {
    found = command_of_words(split_list(text.substr(failed + kFailed.size())));
  } else if (const std::string_view typed = after_prompt(text); !typed.empty()) {
    found = safe_command(typed);
  } else if (launched != std::string_view::npos) {
    found = safe_command(text.substr(launched + kDeepSpeed.size()));
  } else {
    const auto row =
        std::ranges::find_if(kIntroductions, [&](std::string_view one) { return text.starts_with(one); });
    if (row != kIntroductions.end()) found = safe_command(text.substr(row->size()));
  }
  if (!found) found = echoed_command(text);
  if (found && std::ranges::find(commands_, *found) == commands_.end())
    commands_.push_back(std::move(*found));
}

std::optional<std::string> CommandFinder::command_of(std::string_view script) const {
  const std::string_view name = base_of(script);
  std::vector<const std::string*> fitting;
  for (const std::string& command : commands_) {
    const bool names_it = !name.empty() && std::ranges::any_of(split(command), [&](const std::string& word) {
      return is_script(word) && base_of(word) == name;
    });
    if (names_it) fitting.push_back(&command);
  }
  if (fitting.empty() && name.empty() && commands_.size() == 1) fitting.push_back(&commands_.front());
  // What was typed starts what a launcher then reports: the first one is the outermost.
  return fitting.empty() ? std::nullopt : std::optional(*fitting.front());
}

std::optional<std::string> command_from_script(std::string_view script) {
  if (!is_script(script) || !is_plain(script)) return std::nullopt;
  return fmt::format("python {} {}", script, kRest);
}

std::string guarded(const std::string& command) {
  const Words words = split(command);
  std::size_t at = 0;
  while (at < words.size() && is_variable(words[at])) ++at;
  std::string run = "trapline run --";
  if (at < words.size() &&
      is_spawner(words[at])) {  // every process writes to its own machine's /tmp otherwise
    while (at < words.size() && !is_python(words[at]) && !is_launcher(words[at])) ++at;
    run = "trapline run --report DIR --";
  }
  const auto middle = words.begin() + static_cast<std::ptrdiff_t>(at);
  Words all(words.begin(), middle);
  all.push_back(run);
  all.insert(all.end(), middle, words.end());
  return fmt::format("{}", fmt::join(all, " "));
}

}  // namespace trapline
