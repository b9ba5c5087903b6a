#include "log/events/hints.hpp"

#include <re2/re2.h>

#include <algorithm>

#include "log/clean/progress.hpp"

namespace trapline {
namespace {

constexpr int kLater = 5;  // percent: the first batches are over

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool matches(std::string_view text, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

RE2* pattern(const char* text) {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  return new RE2(text, options);
}

}  // namespace

// Words before patterns: nearly every line has none of them.
Hints hints_in(std::string_view text, int progress) {
  Hints hints;
  if (contains(text, "LAUNCH_BLOCKING") && !contains(text, "consider passing")) {
    static const RE2* const set = pattern(R"re(LAUNCH_BLOCKING["']?\]?\s*=\s*["']?1)re");
    if (matches(text, *set)) hints |= Hint::kBlockingLaunches;
  }
  if (contains(text, "embedding_lookup")) hints |= Hint::kTableLookup;
  if (contains(text, "vocab_size")) hints |= Hint::kVocabulary;
  if (contains(text, "Size([")) {
    static const RE2* const map = pattern(
        R"re((?i)(?:out|pred|mask|logits|target|label)\S*.{0,20}Size\(\[\d+, \d+, \d{2,}, \d{2,}\]\))re");
    if (matches(text, *map)) hints |= Hint::kSegmentation;
  }
  if (contains(text, "abel") || contains(text, "n_classes") || contains(text, "num_classes")) {
    static const RE2* const print = pattern(
        R"re((?i)(?:labels?|targets?|class(?:es)?)\b.{0,60}\b(?:outside|out of range|not in range|lies outside|exceeds?|invalid label))re");
    if (!contains(text, "Assertion") && matches(text, *print)) hints |= Hint::kLabelsPrinted;
  }
  const int furthest = std::max(progress_in(text), progress);
  if (furthest == 0) hints |= Hint::kFirstBatch;
  if (furthest > kLater) hints |= Hint::kLaterBatch;
  return hints;
}

}  // namespace trapline
