#include "diagnose/host/errors.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "diagnose/diagnose.hpp"
#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"
#include "diagnose/sample.hpp"

namespace trapline::diagnose {
namespace {

// Longer messages are cut: no wording of the table needs more, and a hostile one costs bounded time.
constexpr std::size_t kMaxMessage = 65536;
constexpr int kMaxCaptures = 12;

RE2::Options options() {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);  // bytes: messages may hold invalid UTF-8
  options.set_dot_nl(true);
  options.set_log_errors(false);
  return options;
}

// Compiled when first asked for: a log needs a few of them.
class CompiledRow {
 public:
  explicit CompiledRow(const HostErrorRow& row) : row_(row) {}

  const HostErrorRow& row() const { return row_; }

  // Where the match begins, and, where it is anchored at the start, the captures, which cost most of the
  // time. nullopt: the pattern does not fit.
  struct Match {
    std::vector<std::string> captures;
    std::size_t begin = 0;
  };
  std::optional<Match> match(std::string_view message, RE2::Anchor anchor) const {
    std::call_once(once_, [this] {
      pattern_ = std::make_unique<RE2>(re2::StringPiece(row_.pattern.data(), row_.pattern.size()), options());
    });
    const re2::StringPiece text(message.data(), message.size());
    re2::StringPiece groups[kMaxCaptures + 1];
    const int captures =
        anchor == RE2::UNANCHORED ? 0 : std::min(pattern_->NumberOfCapturingGroups(), kMaxCaptures);
    const int count = captures + 1;
    if (!pattern_->ok() || !pattern_->Match(text, 0, text.size(), anchor, groups, count)) return std::nullopt;
    Match found;
    for (int group = 1; group < count; ++group)
      found.captures.emplace_back(groups[group].data(), groups[group].size());
    found.begin = static_cast<std::size_t>(groups[0].data() - text.data());
    return found;
  }

 private:
  const HostErrorRow& row_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<RE2> pattern_;
};

const std::deque<CompiledRow>& compiled_rows() {
  static const auto* const rows = [] {
    auto* compiled = new std::deque<CompiledRow>;
    for (const HostErrorRow* row : host_error_rows()) compiled->emplace_back(*row);
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
  message = message.substr(0, kMaxMessage);
  for (const CompiledRow& candidate : compiled_rows()) {
    const HostErrorRow& row = candidate.row();
    if (!names(row.exceptions, exception)) continue;
    auto found = candidate.match(message, RE2::ANCHOR_START);
    if (!found) continue;
    if (row.when != nullptr && (facts == nullptr || !row.when(HostCase(*facts, found->captures)))) continue;
    if (captures != nullptr) *captures = std::move(found->captures);
    return &row;
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
    for (const auto family :
         {position_rows(), loss_rows(), ctc_rows(), product_rows(), broadcast_rows(), layout_rows(),
          layer_rows(), backward_rows(), device_rows(), gpu_rows(), numpy_rows(), dtype_rows(),
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

std::optional<HostMessage> find_host_message(std::span<const HostErrorRow* const> rows,
                                             std::string_view exception, std::string_view line) {
  static const auto* const places = [] {
    auto* all = new std::unordered_map<const HostErrorRow*, std::size_t>;
    for (const CompiledRow& row : compiled_rows()) all->emplace(&row.row(), all->size());
    return all;
  }();
  line = line.substr(0, kMaxMessage);
  std::optional<HostMessage> best;
  std::pair<bool, std::size_t> best_rank;  // of another type, place in the table
  for (const HostErrorRow* row : rows) {
    const std::size_t place = places->at(row);
    const std::pair rank(!names(row->exceptions, exception), place);
    if (row->when != nullptr || (best && best_rank <= rank)) continue;
    if (const auto found = compiled_rows()[place].match(line, RE2::UNANCHORED)) {
      best = HostMessage{row, line.substr(found->begin)};
      best_rank = rank;
    }
  }
  return best;
}

namespace {

// What every finding about an exception on the host has in common.
void complete(const HostError& facts, Finding& finding) {
  finding.stack = facts.stack;
  finding.origin = facts.origin;
  finding.sample = facts.sample;
  finding.process = facts.process;
  finding.progress = facts.progress;
  finding.certainty = Certainty::kDetermined;
  finding.device_assert = false;
  finding.contained = true;  // it was raised before any kernel ran
  finding.evidence.insert(
      finding.evidence.begin(),
      {"exception", std::nullopt,
       facts.message.empty() ? facts.exception : facts.exception + ": " + clip(facts.message, 300)});
}

// A size that was fixed to that of the other batches: the message has that one and this batch's.
bool tells_batch(const ShortBatchFact& batch, std::string_view message) {
  const Shape numbers = parse_shape(message);
  const auto has = [&](std::int64_t n) {
    return std::find(numbers.begin(), numbers.end(), n) != numbers.end();
  };
  if (has(batch.size) && has(batch.rows)) return true;
  constexpr std::string_view kView = "is invalid for input of size ";
  const std::size_t at = message.find(kView);
  if (at == std::string_view::npos || !has(batch.size)) return false;
  const Shape elements = parse_shape(message.substr(at + kView.size()));
  const std::int64_t wanted = numel(parse_shape(message.substr(0, at)));
  return !elements.empty() && wanted > 0 && elements[0] % batch.rows == 0 &&
         elements[0] / batch.rows == wanted / batch.size && wanted % batch.size == 0;
}

void explain_short_batch(const HostError& facts, Finding& finding) {
  // A request's name says nothing about the batch.
  const auto& known = finding.sample;
  const bool is_placed = known && (known->dataset_index || known->batch || known->row ||
                                   !known->one_of.empty() || !known->key.empty());
  if (!facts.batch || is_placed || finding.cause != Cause::kShapeMismatch || facts.batch->rows < 1) return;
  const ShortBatchFact& batch = *facts.batch;
  if (!tells_batch(batch, facts.message)) return;
  if (!finding.sample) finding.sample.emplace();
  finding.sample->batch = batch.number;
  const auto said = [](const std::string& fix) { return fix.find("drop_last") != std::string::npos; };
  if (std::any_of(finding.fix.begin(), finding.fix.end(), said)) return;
  finding.fix.insert(
      finding.fix.begin(),
      fmt::format("batch {} has {} rows, a whole one {}: take the size from the tensor (`x.size(0)`), or use "
                  "DataLoader(..., drop_last=True) where rows may be left out",
                  batch.number, batch.rows, batch.size));
}

// Other sizes than those before it: that speaks of sizes only. A batch that is just in hand is no more than
// the place where it happened.
void add_batch_in_hand(const HostError& facts, Finding& finding) {
  if (!facts.in_hand) return;
  const bool only_in_hand = facts.in_hand->by == "hand";
  const bool fits =
      finding.cause == Cause::kShapeMismatch ||
      (only_in_hand && (finding.cause == Cause::kDtypeMismatch || finding.cause == Cause::kLabelOutOfRange ||
                        finding.cause == Cause::kNumClassesMismatch));
  if (!fits) return;
  if (!finding.sample) {
    finding.sample = facts.in_hand;
  } else if (only_in_hand && finding.sample->one_of.empty() && !finding.sample->dataset_index &&
             finding.sample->batch == facts.in_hand->batch) {
    const std::string request = finding.sample->request;  // the shorter batch: which samples it is of
    finding.sample = facts.in_hand;
    finding.sample->request = request;
  }
}

}  // namespace

std::optional<Finding> finding_of(const HostError& facts) {
  if (raised_by_user(facts)) return std::nullopt;
  std::optional<Finding> found = finding_of_check(facts);
  if (found) {
    complete(facts, *found);
  } else {
    std::vector<std::string> captures;
    const HostErrorRow* row = match(facts.exception, facts.message, &facts, &captures);
    if (row == nullptr) return std::nullopt;
    found.emplace();
    complete(facts, *found);
    found->cause = row->cause;
    found->op = row->op;
    found->argument = row->argument;
    row->write(HostCase(facts, std::move(captures)), *found);
  }
  explain_short_batch(facts, *found);
  add_batch_in_hand(facts, *found);
  if (found->sample) {
    if (const std::string advice = look_at(*found->sample); !advice.empty()) found->fix.push_back(advice);
  }
  return found;
}

}  // namespace trapline::diagnose
