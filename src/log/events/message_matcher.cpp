#include "log/events/message_matcher.hpp"

#include <algorithm>

#include "catalogue/fold.hpp"
#include "catalogue/patterns.hpp"
#include "log/events/assert_line.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMaxWrapped = 400;  // bytes: lines that were wrapped are shorter

// "assertion (x > 0) failed": a check of the host that names no place. What a device prints stands in
// back-quotes, and may be a piece of a longer line.
bool is_hosts_own(std::string_view text, const LineMatches& matches) {
  return matches.condition == nullptr && text.find('`') == std::string_view::npos &&
         std::ranges::all_of(
             matches.parts,
             [](const AssertPart& part) { return part.kind == AssertPart::Kind::kAssertion; }) &&
         !parse_assert(text);
}

}  // namespace

const LineMatches& MessageMatcher::line(std::string_view text, bool after_long, std::string_view exception) {
  const CataloguePhrases& all = messages().phrases;
  matches_.wordings.clear();
  spans_.clear();
  matches_.host_wording = nullptr;
  matches_.host = {};
  host_wordings_.clear();
  host_rows_.clear();
  matches_.parts.clear();
  matches_.condition = nullptr;
  matches_.spanning = matches_.assertion = false;
  longest_condition_ = 0;
  const std::int64_t begin = folded_;
  const auto emit = [&](char c) {
    state_ = all.automaton.step(state_, c);
    ++folded_;
    if (!all.automaton.ends(state_)) return;
    all.automaton.each(state_, [&](std::uint32_t id) { found(all.phrases[id], begin, after_long); });
  };
  TextFolder::feed(text, emit);
  matches_.end = folded_;
  keep_the_longest();
  if (!host_rows_.empty()) choose_host_check(text, after_long, exception);
  look_for_patterns(text);
  before_.assign(text.size() < kMinWrap ? std::string_view() : text.substr(0, kMaxWrapped));
  return matches_;
}

// A message inside another one's words is that other one: "invalid device" of "invalid device function", the
// error that a line of noise quotes.
void MessageMatcher::keep_the_longest() {
  std::vector<const WordingRow*> kept;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    bool is_inside = false;
    for (std::size_t k = 0; k < spans_.size() && !is_inside; ++k) {
      const WordingRow& other = *matches_.wordings[k];
      // Also one that shares words with a longer one: "CUDA error: operation not permitted" of "operation not
      // permitted when stream is capturing".
      const bool holds = spans_[k].begin < spans_[i].end && spans_[i].begin < spans_[k].end &&
                         spans_[k].end - spans_[k].begin > spans_[i].end - spans_[i].begin;
      is_inside = holds && (other.is_failure() || other.kind == WordingKind::kHint);
    }
    if (!is_inside) kept.push_back(matches_.wordings[i]);
  }
  matches_.wordings = std::move(kept);
}

// Patterns are weaker than phrases: where one of these names a failure, they are not asked.
void MessageMatcher::look_for_patterns(std::string_view text) {
  const bool is_known = std::ranges::any_of(matches_.wordings, [](const WordingRow* row) {
    return row->is_failure() || row->kind == WordingKind::kHint ||
           row->effect.refine == Refine::kHardwareByNumber;
  });
  if (is_known) return;
  if (matches_.assertion && !checks_status(text) && !is_hosts_own(text, matches_)) return;
  if (const WordingRow* const row = find_pattern(text)) matches_.wordings.push_back(row);
}

// One line is one host check's message, however many phrases of others it holds.
void MessageMatcher::choose_host_check(std::string_view text, bool after_long, std::string_view exception) {
  HostCheck host = host_check_in(host_rows_, exception, text);
  for (const char* const gap : {"", " "}) {  // a break in mid word, or at a blank
    if (!after_long || host.row != nullptr) break;
    host = host_check_in(host_rows_, exception, before_ + gap + std::string(text));
    matches_.spanning = matches_.spanning || host.row != nullptr;
  }
  if (host.row == nullptr) return;
  const auto at = std::find(host_rows_.begin(), host_rows_.end(), host.row) - host_rows_.begin();
  matches_.host = host;
  matches_.host_wording = host_wordings_[static_cast<std::size_t>(at)];
  // What the catalogue knows of such lines in general, the row knows better.
  const std::string phrase = fold(matches_.host_wording->phrase);
  std::erase_if(matches_.wordings, [&](const WordingRow* row) {
    return row->kind == WordingKind::kHostValue &&
           (!host.message.empty() || phrase.find(fold(row->phrase)) != std::string::npos);
  });
  matches_.wordings.push_back(matches_.host_wording);
}

void MessageMatcher::found(const CataloguePhrase& phrase, std::int64_t line_begin, bool after_long) {
  const auto part = [&](AssertPart::Kind kind, const AssertRow* row = nullptr) {
    matches_.parts.push_back({kind, row, folded_});
  };
  switch (phrase.kind) {
    case CataloguePhrase::Kind::kWording: {
      const bool spans = phrase.length > folded_ - line_begin;
      if (spans && !after_long) break;
      matches_.spanning = matches_.spanning || spans;
      const Messages& all = messages();
      if (const diagnose::HostErrorRow* host = all.hosts[phrase.index]) {
        host_wordings_.push_back(all.rows[phrase.index]);
        host_rows_.push_back(host);
      } else {
        matches_.wordings.push_back(all.rows[phrase.index]);
        spans_.push_back({folded_ - phrase.length, folded_});
      }
      break;
    }
    case CataloguePhrase::Kind::kCondition:
      if (phrase.length <= longest_condition_) break;
      longest_condition_ = phrase.length;
      matches_.condition = &assert_rows()[phrase.index];
      break;
    case CataloguePhrase::Kind::kFile:
      part(AssertPart::Kind::kFile, &assert_rows()[phrase.index]);
      break;
    case CataloguePhrase::Kind::kKernel:
      part(AssertPart::Kind::kKernel, &assert_rows()[phrase.index]);
      break;
    case CataloguePhrase::Kind::kMarker:
      switch (static_cast<Marker>(phrase.index)) {
        case Marker::kAssertion:
          matches_.assertion = true;
          part(AssertPart::Kind::kAssertion);
          break;
        case Marker::kBlock:
          part(AssertPart::Kind::kBlock);
          break;
        case Marker::kThread:
          part(AssertPart::Kind::kThread);
          break;
      }
      break;
  }
}

}  // namespace trapline
