#include "core/knobs.hpp"

#include <algorithm>

namespace trapline {
namespace {

constexpr Knob kKnobs[] = {
#define TRAPLINE_KNOB(who, situation, advice) {who, Situation::situation, advice},
#include "core/knobs.def"
#undef TRAPLINE_KNOB
};

// The settings that an advice turns: "num_labels" of "from_pretrained(..., num_labels={n})".
std::vector<std::string> turned(std::string_view advice) {
  if (advice.find("resize_token_embeddings") != std::string_view::npos) return {"vocab_size"};
  constexpr std::string_view kValue = "={n}";
  const auto in_name = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  std::vector<std::string> names;
  for (std::size_t at = advice.find(kValue); at != std::string_view::npos; at = advice.find(kValue, at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && in_name(advice[begin - 1])) --begin;
    names.emplace_back(advice.substr(begin, at - begin));
  }
  return names;
}

// Whether what is known of the layer speaks against the setting that the row turns.
bool contradicted(const Knob& knob, const LibraryFact& library, const KnobValues& values) {
  const bool of_the_layer = knob.situation == Situation::kClasses || knob.situation == Situation::kIds;
  if (!of_the_layer && knob.situation != Situation::kIndex) return false;
  const std::vector<std::string> names = turned(knob.advice);
  if (names.empty()) return false;
  const auto among = [](const auto& list) {
    return [&](const auto& one) { return std::ranges::find(list, one) != list.end(); };
  };
  if (of_the_layer && library.made_of && std::ranges::none_of(names, among(*library.made_of))) return true;
  if (!values.size) return false;
  return std::ranges::any_of(names, [&](const std::string& name) {
    const auto held = library.settings.find(name);
    return held != library.settings.end() &&
           std::ranges::find(held->second, *values.size) == held->second.end();
  });
}

const Knob* find(Situation situation, const std::vector<std::string>& names, const LibraryFact& library,
                 const KnobValues& values) {
  for (const Knob& knob : kKnobs) {
    if (knob.situation != situation || contradicted(knob, library, values)) continue;
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
  const Knob* knob =
      situation == Situation::kClasses ? find(Situation::kMade, library.callers, library, values) : nullptr;
  if (knob == nullptr)
    knob = find(situation, calls_first ? library.callers : library.owners, library, values);
  if (knob == nullptr)
    knob = find(situation, calls_first ? library.owners : library.callers, library, values);
  if (knob == nullptr) return {};
  std::string text(knob->advice);
  replace(text, "{n}", values.n);
  replace(text, "{label}", values.label);
  replace(text, "{rows}", values.rows);
  return text;
}

}  // namespace trapline
