#include "cli/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "report/lines.hpp"

namespace trapline::cli {
namespace {

constexpr int kWidth = 80;
constexpr int kColumn = 26;  // of what a flag does
constexpr std::string_view kMust = "must be ";

CLI::Validator refuse_unless(std::string rule, std::function<bool(const std::string&)> accepts) {
  return CLI::Validator(
      [rule = std::move(rule), accepts = std::move(accepts)](std::string& value) {
        return accepts(value) ? std::string() : fmt::format("{}{}, not '{}'", kMust, rule, value);
      },
      "");
}

// "a", "a or b", "a, b or c"
std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

std::string paragraphs(std::string_view text, int indent = 0) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    for (const std::string& line : wrap(text.substr(0, end), kWidth - indent, SIZE_MAX)) out += line + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> words) {
  std::string rule = list_of(words);
  return refuse_unless(std::move(rule), [words = std::move(words)](const std::string& value) {
    return std::find(words.begin(), words.end(), value) != words.end();
  });
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  // The largest ones only keep out what nobody means.
  const std::string rule = least < -(std::int64_t{1} << 60U) ? std::string("a whole number")
                           : most >= std::int64_t{1} << 32U
                               ? fmt::format("a whole number, at least {}", least)
                               : fmt::format("a whole number from {} to {}", least, most);
  return refuse_unless(rule, [least, most](const std::string& value) {
    std::int64_t parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    return error == std::errc() && end == value.data() + value.size() && parsed >= least && parsed <= most;
  });
}

CLI::Validator number(double least, double most) {
  return refuse_unless(
      fmt::format("a number from {} to {}", least, most), [least, most](const std::string& value) {
        char* end = nullptr;
        const double parsed = std::strtod(value.c_str(), &end);
        return !value.empty() && *end == '\0' && std::isfinite(parsed) && parsed >= least && parsed <= most;
      });
}

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

std::string HelpPage::make_usage(const CLI::App*, std::string) const { return usage_; }

std::string HelpPage::make_description(const CLI::App* app) const {
  return paragraphs(app->get_description());
}

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
  std::string line = "  " + names;
  // Names that reach into the column get a line of their own.
  if (static_cast<int>(line.size()) >= kColumn)
    line += "\n" + std::string(kColumn, ' ');
  else
    line.resize(kColumn, ' ');
  std::string text;
  const std::string words = is_help ? "print this help" : option->get_description();
  for (const std::string& part : wrap(words, kWidth - kColumn, SIZE_MAX)) {
    text += (text.empty() ? line : std::string(kColumn, ' ')) + part + "\n";
  }
  return text;
}

std::string HelpPage::make_footer(const CLI::App* app) const { return paragraphs(app->get_footer()); }

}  // namespace trapline::cli
