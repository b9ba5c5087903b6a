// Findings on the classes of a data set that has names for them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "diagnose/data.hpp"
#include "diagnose/diagnose.hpp"

namespace trapline::diagnose {
namespace {

Finding about(const std::string& column, const RecordPlace& first) {
  Finding finding;
  finding.certainty = Certainty::kProven;
  finding.device_assert = false;
  finding.argument = column;
  finding.element =
      Element{first.index, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  return finding;
}

// " cat" and "Cat" are "cat".
std::string plain(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isspace(byte) == 0) out += static_cast<char>(std::tolower(byte));
  }
  return out;
}

// Two names that differ in case and blanks alone; empty: there are none.
std::pair<std::string, std::string> alike(const std::vector<std::string>& names) {
  std::map<std::string, std::string> seen;
  for (const std::string& name : names) {
    const auto [at, fresh] = seen.try_emplace(plain(name), name);
    if (!fresh) return {at->second, name};
  }
  return {};
}

std::string ordinal(std::int64_t number) {
  const std::int64_t last = number % 10;
  const bool teen = number / 10 % 10 == 1;
  const char* end = teen || last > 3 || last == 0 ? "th" : last == 1 ? "st" : last == 2 ? "nd" : "rd";
  return std::to_string(number) + end;
}

}  // namespace

Finding finding_of(const UnnamedClass& facts) {
  Finding finding = about(facts.column, facts.first);
  finding.cause = Cause::kLabelOutOfRange;
  finding.element->value = facts.label;
  finding.element->bad = facts.bad;
  finding.element->total = facts.total;
  const std::string range = fmt::format("{} to {}", facts.ids.front(), facts.ids.back());
  finding.valid =
      Valid{fmt::format("the {} classes that the data set names, {} with gaps", facts.ids.size(), range),
            Scalar{facts.ids.front()},
            Scalar{facts.ids.back()},
            {}};
  finding.summary =
      fmt::format("{}: {} is {}, and the data set has no class of that number: {} of {} value{}",
                  facts.first.source, element_text(facts.column, facts.first.index), facts.label, facts.bad,
                  facts.total, facts.total == 1 ? "" : "s");
  finding.fix.push_back(fmt::format(
      "the data set names {} classes from {}, and this is none of them: correct the record, or leave it out",
      facts.ids.size(), range));
  finding.fix.emplace_back("if it is a class, add it to the list of classes of the data set first");
  add_place(facts.first, fmt::format("{} is {}", element_text(facts.column, facts.first.index), facts.label),
            finding);
  return finding;
}

Finding finding_of(const TextLabels& facts) {
  Finding finding = about(facts.column, facts.first);
  finding.cause = Cause::kNumClassesMismatch;
  const auto count = static_cast<std::int64_t>(facts.names.size());
  const std::string& extra = facts.names[static_cast<std::size_t>(facts.limit)];
  finding.classes = Classes{count, facts.limit, {}};
  finding.summary = fmt::format(
      "{}: {} has {} different texts for {} class{}: the {} is '{}', first in {}", facts.first.source,
      facts.column, count, facts.limit, facts.limit == 1 ? "" : "es", ordinal(facts.limit + 1), extra,
      facts.first.index.empty() ? "the file" : fmt::format("row {}", facts.first.index[0]));
  if (const auto [one, other] = alike(facts.names); !other.empty()) {
    finding.fix.push_back(fmt::format(
        "'{}' and '{}' are two classes to a program: write one of them: df['{}'].str.strip().str.lower()",
        one, other, facts.column));
  }
  finding.fix.push_back(fmt::format("if each text is a class, the model needs {} outputs", count));
  finding.fix.push_back(fmt::format("if '{}' is none, correct the record, or leave it out", extra));
  add_place(facts.first, fmt::format("{} is '{}'", element_text(facts.column, facts.first.index), extra),
            finding);
  return finding;
}

}  // namespace trapline::diagnose
