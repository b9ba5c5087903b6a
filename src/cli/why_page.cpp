#include "cli/why_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "catalogue/asserts.hpp"
#include "catalogue/wordings.hpp"
#include "cli/embedded.hpp"
#include "diagnose/host/errors.hpp"
#include "diagnose/violation/rule_words.hpp"

namespace trapline::cli {
namespace {

constexpr std::size_t kMaxMessages = 12;  // of a kind on one page
constexpr std::string_view kExampleBefore = "## Workaround";

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of("\n ");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of("\n ") - first + 1));
}

// An example is part of the page where both its halves exist; else the text says why there is none.
std::string example(std::string_view slug) {
  const auto broken = embedded_text(fmt::format("{}_broken.py", slug));
  const auto fixed = embedded_text(fmt::format("{}_fixed.py", slug));
  if (broken.empty() || fixed.empty()) return {};
  return fmt::format("## Example\n\nBroken:\n\n```python\n{}\n```\n\nFixed:\n\n```python\n{}\n```\n\n",
                     trimmed(broken), trimmed(fixed));
}

// One line for all operations with the same words.
std::string contracts_of(Cause cause) {
  struct Group {
    std::string words;
    std::vector<std::string_view> operations;
  };
  std::vector<Group> groups;
  for (const Contract& contract : contracts()) {
    if (contract.cause != cause) continue;
    const std::string words = fmt::format(
        "`{}` of `{}`: {}{}", contract.public_argument, contract.public_op, diagnose::rule_words(contract),
        contract.remember        ? " (no error by itself: remembered as the origin of a later one)"
        : contract.device_assert ? ""
                                 : " (without the guard: no device-side assert)");
    auto group = std::ranges::find(groups, words, &Group::words);
    if (group == groups.end()) group = groups.insert(groups.end(), Group{words, {}});
    group->operations.push_back(contract.op);
  }
  std::string text;
  for (const Group& group : groups) {
    text += fmt::format("- {}. Operators:", group.words);
    for (const std::string_view op : group.operations) text += fmt::format(" `{}`", op);
    text += "\n";
  }
  return text.empty() ? text : "## What the guard checks\n\n" + text + "\n";
}

std::string as_code(std::string_view line) {
  line = line.substr(0, line.find('\n'));
  // A back-quote inside needs a longer fence.
  return line.find('`') == std::string_view::npos ? fmt::format("`{}`", line) : fmt::format("`` {} ``", line);
}

void add_messages(std::string& text, std::string_view title, const std::vector<std::string_view>& samples) {
  if (samples.empty()) return;
  text += fmt::format("{}\n\n", title);
  for (std::size_t i = 0; i < std::min(samples.size(), kMaxMessages); ++i) {
    text += fmt::format("- {}\n", as_code(samples[i]));
  }
  const std::size_t rest = samples.size() - std::min(samples.size(), kMaxMessages);
  if (rest > 0) text += fmt::format("- and {} more {}\n", rest, rest == 1 ? "wording" : "wordings");
  text += "\n";
}

std::string messages_of(Cause cause) {
  std::vector<std::string_view> asserts;
  std::vector<std::string_view> conditions;
  for (const AssertRow& row : assert_rows()) {
    if (row.cause != cause || row.reach != Reach::kUser || row.sample.empty()) continue;
    if (std::ranges::find(conditions, row.condition) != conditions.end()) continue;
    conditions.push_back(row.condition);
    asserts.push_back(row.sample);
  }
  std::vector<std::string_view> exceptions;
  for (const diagnose::HostErrorRow* row : diagnose::host_error_rows()) {
    if (row->cause == cause && !row->samples.empty()) exceptions.push_back(row->samples.front());
  }
  std::vector<std::string_view> wordings;
  for (const WordingRow& row : wording_rows()) {
    const bool is_failure = row.kind != WordingKind::kHint && row.kind != WordingKind::kContext &&
                            row.kind != WordingKind::kEvidence;
    if (row.cause != cause || !is_failure || row.sample.empty()) continue;
    const bool on_host = row.kind == WordingKind::kHost || row.kind == WordingKind::kHostValue;
    (on_host ? exceptions : wordings).push_back(row.sample);
  }
  // CUDA's own words first: they are what most people have before them.
  std::stable_partition(wordings.begin(), wordings.end(), [](std::string_view sample) {
    return sample.find("CUDA driver error") != std::string_view::npos;
  });
  std::string text;
  add_messages(text, "Lines of device-side assertions:", asserts);
  add_messages(text, "Exceptions on the host:", exceptions);
  add_messages(text, "Other messages:", wordings);
  return text.empty() ? text : "## What programs print\n\n" + text;
}

}  // namespace

std::string cause_page(Cause cause) {
  const CauseInfo& row = info(cause);
  const std::string text = trimmed(embedded_text(std::string(row.slug) + ".md"));
  std::string page = fmt::format("# {}: {}\n\nCause: `{}`\n\n", row.code, row.title, row.slug);
  const auto before = text.find(kExampleBefore);
  page += text.substr(0, before) + example(row.slug);
  if (before != std::string::npos) page += text.substr(before);
  return trimmed(page + "\n\n" + contracts_of(cause) + messages_of(cause)) + "\n";
}

std::string list_of_causes() {
  std::string text;
  for (const CauseInfo& row : all_causes())
    text += fmt::format("{}  {:<29} {}\n", row.code, row.slug, row.title);
  return text;
}

}  // namespace trapline::cli
