#include "core/knobs.hpp"

namespace trapline {
namespace {

constexpr Knob kKnobs[] = {
#define TRAPLINE_KNOB(who, situation, advice) {who, Situation::situation, advice},
#include "core/knobs.def"
#undef TRAPLINE_KNOB
};

const Knob* find(Situation situation, const std::vector<std::string>& names) {
  for (const Knob& knob : kKnobs) {
    if (knob.situation != situation) continue;
    for (const std::string& name : names) {
      if (matches(knob.who, name)) return &knob;
    }
  }
  return nullptr;
}

void replace(std::string& text, std::string_view placeholder, const std::string& value) {
  for (std::size_t at = text.find(placeholder); at != std::string::npos;
       at = text.find(placeholder, at + value.size())) {
    text.replace(at, placeholder.size(), value);
  }
}

}  // namespace

std::span<const Knob> knobs() { return kKnobs; }

bool matches(std::string_view pattern, std::string_view text) {
  // The usual walk with one point of return: linear in practice, never exponential.
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string knob_advice(Situation situation, const LibraryFact& library, const KnobValues& values) {
  const bool calls_first = situation == Situation::kIgnore || situation == Situation::kIndex ||
                           situation == Situation::kPositions || situation == Situation::kSelected ||
                           situation == Situation::kOneHot;
  const Knob* knob = situation == Situation::kClasses ? find(Situation::kMade, library.callers) : nullptr;
  if (knob == nullptr) knob = find(situation, calls_first ? library.callers : library.owners);
  if (knob == nullptr) knob = find(situation, calls_first ? library.owners : library.callers);
  if (knob == nullptr) return {};
  std::string text(knob->advice);
  replace(text, "{n}", values.n);
  replace(text, "{label}", values.label);
  replace(text, "{rows}", values.rows);
  return text;
}

}  // namespace trapline
