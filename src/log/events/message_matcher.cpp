#include "log/events/message_matcher.hpp"

#include "catalogue/fold.hpp"

namespace trapline {

const LineMatches& MessageMatcher::line(std::string_view text, bool after_long) {
  const CataloguePhrases& all = catalogue_phrases();
  matches_.wordings.clear();
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
  Folder::feed(text, emit);
  matches_.end = folded_;
  return matches_;
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
      matches_.wordings.push_back(&wording_rows()[phrase.index]);
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
