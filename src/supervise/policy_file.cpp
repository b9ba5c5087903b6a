// The policy file of --policy: TOML, the flags' names without hyphens as keys, and a table [decide].
//
// toml++ 3.3 asserts on a table without a name ("[[") in front of the line that makes an error of it: without
// assertions, as in every release build, the error comes.
#ifndef NDEBUG
#define NDEBUG
#endif
#include <fmt/format.h>
#include <toml++/toml.h>

#include <array>
#include <fstream>

#include "supervise/options.hpp"

namespace trapline::supervise {
namespace {

constexpr std::size_t kMaxFile = std::size_t{1} << 20U;

// What a key takes, and where it goes. The ranges are those of the flags.
struct NumberKey {
  std::string_view name;
  std::optional<double> Wishes::*member;
  double min, max;
};
struct WholeKey {
  std::string_view name;
  std::optional<std::int64_t> Wishes::*member;
  std::int64_t min, max;
};
struct TextKey {
  std::string_view name;
  std::optional<std::string> Wishes::*member;
};

constexpr std::array kNumbers{
    NumberKey{"probe_interval", &Wishes::probe_interval, 0.05, 86400},
    NumberKey{"probe_timeout", &Wishes::probe_timeout, 0.05, 3600},
    NumberKey{"stall", &Wishes::stall, 1, 604800},
    NumberKey{"grace", &Wishes::grace, 0, 3600},
    NumberKey{"window", &Wishes::window, 1, 604800},
    NumberKey{"delay", &Wishes::delay, 0, 3600},
    NumberKey{"max_delay", &Wishes::max_delay, 0, 86400},
};
constexpr std::array kWholes{
    WholeKey{"probe_failures", &Wishes::probe_failures, 1, 1000},
    WholeKey{"restarts", &Wishes::restarts, 0, 1'000'000},
};
constexpr std::array kTexts{TextKey{"status", &Wishes::status}, TextKey{"probe", &Wishes::probe}};

class Reader {
 public:
  Reader(std::string file, Wishes& wishes) : file_(std::move(file)), wishes_(wishes) {}

  std::optional<Error> read(const toml::table& table) {
    for (const auto& [key, value] : table) {
      if (auto error = entry(key.str(), value)) return error;
    }
    return std::nullopt;
  }

 private:
  Error wrong(const toml::node& node, std::string what, std::string fix) const {
    return {fmt::format("{}:{}: {}", file_, node.source().begin.line, what), "", std::move(fix)};
  }

  std::optional<Error> entry(std::string_view key, const toml::node& value) {
    if (key == "decide") return decide(value);
    if (key == "listen") return listen(value);
    if (key == "replace") {
      const auto word = value.value<std::string>();
      if (word != "tree" && word != "process")
        return wrong(value, "replace must be \"tree\" or \"process\"", "correct the value");
      if (!wishes_.replace) wishes_.replace = word;
      return std::nullopt;
    }
    if (key == "standby") {
      if (!value.is_boolean()) return wrong(value, "standby must be true or false", "correct the value");
      wishes_.standby = wishes_.standby || *value.value<bool>();
      return std::nullopt;
    }
    for (const NumberKey& one : kNumbers) {
      if (one.name != key) continue;
      const auto number = value.is_number() ? value.value<double>() : std::nullopt;
      if (!number || !(*number >= one.min && *number <= one.max))
        return wrong(value, fmt::format("{} must be a number from {} to {}", key, one.min, one.max),
                     "correct the value");
      if (!(wishes_.*one.member)) wishes_.*one.member = *number;
      return std::nullopt;
    }
    for (const WholeKey& one : kWholes) {
      if (one.name != key) continue;
      const auto number = value.is_integer() ? value.value<std::int64_t>() : std::nullopt;
      if (!number || *number < one.min || *number > one.max)
        return wrong(value, fmt::format("{} must be a whole number from {} to {}", key, one.min, one.max),
                     "correct the value");
      if (!(wishes_.*one.member)) wishes_.*one.member = *number;
      return std::nullopt;
    }
    for (const TextKey& one : kTexts) {
      if (one.name != key) continue;
      if (!value.is_string())
        return wrong(value, fmt::format("{} must be a text", key), "put it into quotation marks");
      if (!(wishes_.*one.member)) wishes_.*one.member = *value.value<std::string>();
      return std::nullopt;
    }
    return wrong(value, fmt::format("there is no '{}'", key), "the keys are in docs/supervise.md");
  }

  std::optional<Error> listen(const toml::node& value) {
    const bool is_given = !wishes_.listen.empty();
    std::vector<std::string> addresses;
    if (value.is_string()) {
      addresses.push_back(*value.value<std::string>());
    } else if (const toml::array* list = value.as_array();
               list != nullptr && list->is_homogeneous<std::string>()) {
      for (const toml::node& one : *list) addresses.push_back(*one.value<std::string>());
    } else {
      return wrong(value, "listen must be an address or a list of them", "e.g. listen = \"127.0.0.1:8000\"");
    }
    if (!is_given) wishes_.listen = std::move(addresses);
    return std::nullopt;
  }

  std::optional<Error> decide(const toml::node& value) {
    const toml::table* table = value.as_table();
    if (table == nullptr)
      return wrong(value, "decide must be a table", "e.g. [decide] and below it TL401 = \"stop\"");
    for (const auto& [code, action] : *table) {
      const auto cause = find_cause(code.str());
      if (!cause) return wrong(action, fmt::format("'{}' is no cause", code.str()), "see `trapline why`");
      const auto chosen = action.is_string() ? action_of_name(*action.value<std::string>()) : std::nullopt;
      if (!chosen)
        return wrong(action, fmt::format("{} must be \"retry\", \"quarantine\" or \"stop\"", code.str()),
                     "correct the value");
      wishes_.decisions[*cause] = *chosen;
    }
    return std::nullopt;
  }

  std::string file_;
  Wishes& wishes_;
};

}  // namespace

std::optional<Error> add_policy_file(const std::filesystem::path& file, Wishes& wishes) {
  const std::string name = file.string();
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error{"cannot read the policy " + name, "", "check its name and permissions"};
  std::string text(kMaxFile + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return Error{"cannot read the policy " + name, "", "it must be a file"};
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMaxFile)
    return Error{"the policy " + name + " is larger than 1 MiB", "", "name another file"};
  try {
    return Reader(name, wishes).read(toml::parse(text, name));
  } catch (const toml::parse_error& error) {
    return Error{fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()), "",
                 "correct the TOML"};
  }
}

}  // namespace trapline::supervise
