#include "diagnose/host/errors.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>

#include "diagnose/diagnose.hpp"
#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"
#include "diagnose/sample.hpp"

namespace trapline::diagnose {
namespace {

// Longer messages are cut: no wording of the table needs more, and a hostile one costs bounded time.
constexpr std::size_t kLongestMessage = 65536;
constexpr int kMostCaptures = 12;

struct CompiledRow {
  const HostErrorRow* row;
  std::unique_ptr<RE2> pattern;
};

RE2::Options options() {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);  // bytes: messages may hold invalid UTF-8
  options.set_dot_nl(true);
  options.set_log_errors(false);
  return options;
}

const std::vector<CompiledRow>& compiled_rows() {
  static const auto* const rows = [] {
    auto* compiled = new std::vector<CompiledRow>;
    for (const HostErrorRow* row : host_error_rows()) {
      compiled->push_back({row, std::make_unique<RE2>(
                                    re2::StringPiece(row->pattern.data(), row->pattern.size()), options())});
    }
    return compiled;
  }();
  return *rows;
}

bool names(std::string_view list, std::string_view exception) {
  while (true) {
    const std::size_t bar = list.find('|');
    if (list.substr(0, bar) == exception) return true;
    if (bar == std::string_view::npos) return false;
    list.remove_prefix(bar + 1);
  }
}

// `facts` are asked by rows for which the message is not enough; without facts those rows do not fit.
const HostErrorRow* match(std::string_view exception, std::string_view message, const HostError* facts,
                          std::vector<std::string>* captures) {
  message = message.substr(0, kLongestMessage);
  const re2::StringPiece text(message.data(), message.size());
  for (const CompiledRow& candidate : compiled_rows()) {
    if (!names(candidate.row->exceptions, exception) || !candidate.pattern->ok()) continue;
    re2::StringPiece groups[kMostCaptures + 1];
    const int count = std::min(candidate.pattern->NumberOfCapturingGroups(), kMostCaptures) + 1;
    if (!candidate.pattern->Match(text, 0, text.size(), RE2::ANCHOR_START, groups, count)) continue;
    std::vector<std::string> found;
    for (int group = 1; group < count; ++group)
      found.emplace_back(groups[group].data(), groups[group].size());
    if (candidate.row->when != nullptr &&
        (facts == nullptr || !candidate.row->when(HostCase(*facts, found)))) {
      continue;
    }
    if (captures != nullptr) *captures = std::move(found);
    return candidate.row;
  }
  return nullptr;
}

// `raise ValueError(...)` in the user's own code is the user's message, whatever its words.
bool raised_by_user(const HostError& facts) {
  if (facts.stack.empty() || !facts.stack.back().user.value_or(false)) return false;
  std::string_view code = facts.stack.back().code;
  code.remove_prefix(std::min(code.find_first_not_of(" \t"), code.size()));
  return code.starts_with("raise") && (code.size() == 5 || code[5] == ' ');
}

}  // namespace

std::span<const HostErrorRow* const> host_error_rows() {
  static const auto* const rows = [] {
    auto* all = new std::vector<const HostErrorRow*>;
    for (const auto family : {position_rows(), loss_rows(), product_rows(), layout_rows(), layer_rows(),
                              backward_rows(), device_rows(), gpu_rows(), numpy_rows(), dtype_rows(),
                              index_dtype_rows(), index_rows(), sampling_rows()}) {
      for (const HostErrorRow& row : family) all->push_back(&row);
    }
    return all;
  }();
  return *rows;
}

const HostErrorRow* find_host_error(std::string_view exception, std::string_view message) {
  return match(exception, message, nullptr, nullptr);
}

std::optional<Finding> finding_of(const HostError& facts) {
  if (raised_by_user(facts)) return std::nullopt;
  std::vector<std::string> captures;
  const HostErrorRow* row = match(facts.exception, facts.message, &facts, &captures);
  if (row == nullptr) return std::nullopt;

  Finding finding;
  finding.stack = facts.stack;
  finding.origin = facts.origin;
  finding.sample = facts.sample;
  finding.process = facts.process;
  finding.cause = row->cause;
  finding.certainty = Certainty::kDetermined;
  finding.device_assert = false;
  finding.contained = true;  // it was raised before any kernel ran
  finding.op = row->op;
  finding.argument = row->argument;
  finding.evidence.push_back({"exception", std::nullopt, facts.exception + ": " + clip(facts.message, 300)});
  row->write(HostCase(facts, std::move(captures)), finding);
  if (finding.sample) {
    if (const std::string advice = look_at(*finding.sample); !advice.empty()) finding.fix.push_back(advice);
  }
  return finding;
}

}  // namespace trapline::diagnose
