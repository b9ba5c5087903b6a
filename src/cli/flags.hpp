// The flags of one command: what there is, what it may be, its help page, and reading it. CLI11 does the
// work; only flags.cpp sees it, because its header costs more than all of a command's own code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.hpp"

namespace trapline::cli {

struct OneOf {
  std::vector<std::string> words;
};
struct WholeNumber {
  std::int64_t min, max;
};
struct Number {
  double min, max;
};

struct Flag {
  // Where the value goes; an optional stays empty when the flag is not given.
  using Target = std::variant<bool*, unsigned*, std::int64_t*, std::string*, std::vector<std::string>*,
                              std::optional<std::int64_t>*, std::optional<double>*,
                              std::optional<std::string>*, std::optional<std::filesystem::path>*>;

  std::string names;  // "-o,--output"; without hyphens: the words that belong to no flag
  std::string value;  // what the help calls its value; empty: it takes none
  Target target;
  std::string help;
  std::variant<std::monostate, OneOf, WholeNumber, Number> rule{};
};

// "a", "a or b", "a, b or c"
std::string list_of(const std::vector<std::string>& words);

class FlagSet {
 public:
  // `command` is "check labels"; `usage` stands after it on the help page.
  FlagSet(std::string_view command, std::string_view summary, std::string_view usage);
  ~FlagSet();
  FlagSet(const FlagSet&) = delete;
  FlagSet& operator=(const FlagSet&) = delete;

  void add(const Flag& flag);
  void set_footer(const std::string& text);  // the last paragraph of the help page

  // How many of the words are the command's own; the rest begins with the name of a program, or with `--`,
  // and is not ours to read.
  std::size_t count_own(const std::vector<std::string>& words) const;

  // What was added, in that order, and the last paragraph: what manuals and completions are made of.
  const std::vector<Flag>& flags() const { return flags_; }
  const std::string& footer() const { return footer_; }

  enum class Read { kDone, kHelpWanted };
  // Puts the values where they belong; an error is in our words: "--format must be json or text, not 'xml'".
  Result<Read> read(const std::vector<std::string>& words);
  std::string help() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::vector<Flag> flags_;
  std::string footer_;
};

// Names, and from `column` on what they are; names that reach into the column have it on the next line.
std::string help_entry(std::string names, std::string_view words, int column);

// How wide help may be: the terminal's width, at most 80 columns.
int help_width();

}  // namespace trapline::cli
