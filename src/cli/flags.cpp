#include "cli/flags.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/suggest.hpp"
#include "report/lines.hpp"
#include "report/style.hpp"

namespace trapline::cli {
namespace {

constexpr int kColumn = 26;  // of what a flag does; a narrow terminal has it below the names
constexpr std::string_view kMust = "must be ";

CLI::Validator refuse_unless(std::string rule, std::function<bool(const std::string&)> accepts) {
  return CLI::Validator(
      [rule = std::move(rule), accepts = std::move(accepts)](std::string& value) {
        return accepts(value) ? std::string() : fmt::format("{}{}, not '{}'", kMust, rule, value);
      },
      "");
}

std::string paragraphs(std::string_view text, int indent = 0) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    for (const std::string& line : wrap(text.substr(0, end), help_width() - indent, SIZE_MAX))
      out += line + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

CLI::Validator validator(const OneOf& rule) {
  return refuse_unless(list_of(rule.words), [words = rule.words](const std::string& value) {
    return std::find(words.begin(), words.end(), value) != words.end();
  });
}

CLI::Validator validator(const WholeNumber& range) {
  const auto [least, most] = range;
  // The largest ones only keep out what nobody means.
  const std::string rule = least < -(std::int64_t{1} << 60U) ? std::string("a whole number")
                           : most >= std::int64_t{1} << 32U
                               ? fmt::format("a whole number, at least {}", least)
                               : fmt::format("a whole number from {} to {}", least, most);
  return refuse_unless(rule, [least = least, most = most](const std::string& value) {
    std::int64_t parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    return error == std::errc() && end == value.data() + value.size() && parsed >= least && parsed <= most;
  });
}

CLI::Validator validator(const Number& range) {
  return refuse_unless(fmt::format("a number from {} to {}", range.min, range.max),
                       [range](const std::string& value) {
                         char* end = nullptr;
                         const double parsed = std::strtod(value.c_str(), &end);
                         return !value.empty() && *end == '\0' && std::isfinite(parsed) &&
                                parsed >= range.min && parsed <= range.max;
                       });
}

// What CLI11 found wrong with a flag's value, in our words; empty when it is something else.
std::string value_problem(const CLI::ParseError& problem) {
  const std::string what = problem.what();
  if (const auto at = what.find(fmt::format(": {}", kMust)); at != std::string::npos)
    return what.substr(0, at) + what.substr(at + 1);
  constexpr std::string_view kMissing = ": 1 required ";
  if (const auto at = what.find(kMissing); at != std::string::npos) {
    std::string value = what.substr(at + kMissing.size());
    return fmt::format("{} needs a value: {}", what.substr(0, at), value.substr(0, value.find(' ')));
  }
  return {};
}

// CLI11's help in 80 columns, with a usage line of our own, because CLI11 does not know of the program after
// the flags.
class HelpPage : public CLI::Formatter {
 public:
  explicit HelpPage(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App*, std::string) const override { return usage_; }
  std::string make_description(const CLI::App* app) const override {
    return paragraphs(app->get_description());
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_footer(const CLI::App* app) const override { return paragraphs(app->get_footer()); }

 private:
  std::string usage_;
};

std::string HelpPage::make_group(std::string, bool is_positional,
                                 std::vector<const CLI::Option*> options) const {
  std::string text = is_positional ? "\narguments:\n" : "\nflags:\n";
  for (const CLI::Option* option : options) text += make_option(option, is_positional);
  return text;
}

std::string HelpPage::make_option(const CLI::Option* option, bool is_positional) const {
  std::string names;
  if (!is_positional) {
    for (const std::string& name : option->get_snames()) names += (names.empty() ? "-" : ", -") + name;
    for (const std::string& name : option->get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  }
  const bool is_help = names == "-h, --help";
  if (option->get_type_size() != 0) names += (names.empty() ? "" : " ") + option->get_type_name();
  if (is_positional && option->get_expected_max() > 1) names += " ...";
  const std::string words = is_help ? "print this help" : option->get_description();
  return help_entry("  " + names, words, kColumn);
}

// CLI11 declares an option by the type of what takes its value; a path is not one of its types.
CLI::Option* declare(CLI::App& app, const Flag& flag, bool* target) {
  return app.add_flag(flag.names, *target, flag.help);
}
CLI::Option* declare(CLI::App& app, const Flag& flag, std::optional<std::filesystem::path>* target) {
  return app.add_option_function<std::string>(
      flag.names,
      [target](const std::string& value) {
        if (!value.empty()) *target = value;
      },
      flag.help);
}
CLI::Option* declare(CLI::App& app, const Flag& flag, auto* target) {
  return app.add_option(flag.names, *target, flag.help);
}

}  // namespace

std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

std::string help_entry(std::string names, std::string_view words, int column) {
  constexpr int kNarrow = 60;
  if (help_width() < kNarrow) column = 6;
  if (static_cast<int>(names.size()) >= column)
    names += "\n" + std::string(static_cast<std::size_t>(column), ' ');
  else
    names.resize(static_cast<std::size_t>(column), ' ');
  std::string text;
  for (const std::string& part : wrap(words, help_width() - column, SIZE_MAX))
    text += (text.empty() ? names : std::string(static_cast<std::size_t>(column), ' ')) + part + "\n";
  return text;
}

struct FlagSet::Parser {
  std::string command;
  CLI::App app;

  Error error_of(const CLI::ParseError& problem, const std::vector<std::string>& words) const;
};

FlagSet::FlagSet(std::string_view command, std::string_view summary, std::string_view usage)
    : parser_(new Parser{std::string(command), CLI::App(std::string(summary))}) {
  parser_->app.formatter(
      std::make_shared<HelpPage>(fmt::format("\nusage: trapline {} {}\n", command, usage)));
}

FlagSet::~FlagSet() = default;

void FlagSet::add(const Flag& flag) {
  flags_.push_back(flag);
  CLI::Option* option =
      std::visit([&](auto* target) { return declare(parser_->app, flag, target); }, flag.target);
  if (!flag.value.empty()) option->type_name(flag.value);
  std::visit(
      [&](const auto& rule) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(rule)>, std::monostate>)
          option->check(validator(rule));
      },
      flag.rule);
}

void FlagSet::set_footer(const std::string& text) {
  footer_ = text;
  parser_->app.footer(text);
}

int help_width() {
  constexpr int kMax = 80;
  return std::min(kMax, resolve_style(ColorChoice::kNever, detect_terminal(STDOUT_FILENO)).width);
}

std::size_t FlagSet::count_own(const std::vector<std::string>& words) const {
  std::size_t i = 0;
  while (i < words.size()) {
    const std::string& word = words[i];
    if (word == "--" || word.size() < 2 || word.front() != '-') return i;
    const auto equals = word.find('=');
    const bool is_long = word.starts_with("--");
    const CLI::Option* option =
        parser_->app.get_option_no_throw(is_long ? word.substr(0, equals) : word.substr(0, 2));
    const bool has_value_inside = is_long ? equals != std::string::npos : word.size() > 2;
    i += option != nullptr && option->get_items_expected_max() > 0 && !has_value_inside ? 2 : 1;
  }
  return std::min(i, words.size());
}

Error FlagSet::Parser::error_of(const CLI::ParseError& problem, const std::vector<std::string>& words) const {
  const std::string see_help = fmt::format("see `trapline {} --help`", command);
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name.size() < 2 || name.front() != '-' || app.get_option_no_throw(name) != nullptr) continue;
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& flag : option->get_lnames()) known.push_back("--" + flag);
    }
    const auto near = nearest(name, known);
    if (problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
      return {fmt::format("`trapline {}` has no flag '{}'", command, name), "",
              near ? "did you mean " + *near + "?" : see_help};
    }
  }
  if (std::string why = value_problem(problem); !why.empty()) return {why, "", see_help};
  std::string why = problem.what();
  std::ranges::replace(why, '\n', ' ');
  return {fmt::format("cannot read the flags of `{}`", command), why, see_help};
}

Result<FlagSet::Read> FlagSet::read(const std::vector<std::string>& words) {
  try {
    parser_->app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // the order that CLI11 takes
  } catch (const CLI::CallForHelp&) {
    return Read::kHelpWanted;
  } catch (const CLI::ParseError& problem) {
    return parser_->error_of(problem, words);
  }
  return Read::kDone;
}

std::string FlagSet::help() const { return parser_->app.help(); }

}  // namespace trapline::cli
