// The values of flags, refused in plain words: "--format must be json or text, not 'xml'"; and the help page.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace trapline::cli {

CLI::Validator one_of(std::vector<std::string> words);
CLI::Validator whole_number(std::int64_t least, std::int64_t most);
CLI::Validator number(double least, double most);

// What CLI11 found wrong with a flag's value, in our words; empty when it is something else.
std::string value_problem(const CLI::ParseError& problem);

// CLI11's help in 80 columns, with a usage line of our own, because CLI11 does not know of the program after
// the flags.
class HelpPage : public CLI::Formatter {
 public:
  explicit HelpPage(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_footer(const CLI::App* app) const override;

 private:
  std::string usage_;
};

}  // namespace trapline::cli
