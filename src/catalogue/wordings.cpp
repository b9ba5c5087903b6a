#include "catalogue/wordings.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "catalogue/asserts.hpp"
#include "catalogue/fold.hpp"
#include "catalogue/statuses.hpp"

namespace trapline {
namespace {

using enum Cause;
using enum Certainty;
using enum Complaint;
using enum Hint;
using enum Refine;
using enum WordingKind;
constexpr auto kNo = Device::kNo;
constexpr auto kYes = Device::kYes;
constexpr auto kMaybe = Device::kUnknown;
using Row = WordingRow;

constexpr WordingRow kWordings[] = {
#define TRAPLINE_WORDING(...) Row{__VA_ARGS__},
#include "catalogue/wordings_cuda.def"
#include "catalogue/wordings_distributed.def"
#include "catalogue/wordings_frameworks.def"
#include "catalogue/wordings_host.def"
#include "catalogue/wordings_values.def"
#undef TRAPLINE_WORDING
};

struct Message {
  std::string_view id;
  Meaning meaning;
  std::string_view phrase, sample;
};

constexpr Message kMessages[] = {
#define TRAPLINE_MESSAGE(id, meaning, phrase, sample) Message{id, Meaning::meaning, phrase, sample},
#include "catalogue/messages_edge.def"
#include "catalogue/messages_frameworks.def"
#include "catalogue/messages_jobs.def"
#include "catalogue/messages_machine.def"
#include "catalogue/messages_programs.def"
#include "catalogue/messages_science.def"
#include "catalogue/messages_servers.def"
#include "catalogue/messages_torch.def"
#undef TRAPLINE_MESSAGE
};

constexpr WordingRow kNoise[] = {
#define TRAPLINE_NOISE(id, phrase, sample) \
  Row{id, kHint, kInsufficientEvidence, kUnknown, kMaybe, "", "", phrase, sample},
#define TRAPLINE_NOISE_IF_IT_GOES_ON(id, meaning, phrase, sample) \
  Row{id, kHint, kInsufficientEvidence, kUnknown, kMaybe, "", "", phrase, sample, {.if_it_goes_on = true}},
#include "catalogue/noise.def"
#include "catalogue/noise_machine.def"
#include "catalogue/noise_torch.def"
#undef TRAPLINE_NOISE
#undef TRAPLINE_NOISE_IF_IT_GOES_ON
};

// The same rows, of a log that ends with one.
const std::vector<WordingRow>& ends() {
  static const std::vector<WordingRow> all{
#define TRAPLINE_NOISE(id, phrase, sample)
#define TRAPLINE_NOISE_IF_IT_GOES_ON(id, meaning, phrase, sample) \
  wording_of(id, Meaning::meaning, phrase, sample),
#include "catalogue/noise.def"
#include "catalogue/noise_machine.def"
#include "catalogue/noise_torch.def"
#undef TRAPLINE_NOISE
#undef TRAPLINE_NOISE_IF_IT_GOES_ON
  };
  return all;
}

const std::vector<WordingRow>& rows() {
  static const std::vector<WordingRow> all = [] {
    std::vector<WordingRow> made(std::begin(kWordings), std::end(kWordings));
    for (const Message& m : kMessages) made.push_back(wording_of(m.id, m.meaning, m.phrase, m.sample));
    made.insert(made.end(), std::begin(kNoise), std::end(kNoise));
    std::ranges::move(status_wordings(), std::back_inserter(made));
    return made;
  }();
  return all;
}

// Conditions and names that are too short or too common to stand for an assertion without their line.
constexpr std::size_t kMinCondition = 9;
constexpr std::size_t kMinName = 9;

}  // namespace

WordingRow wording_of(std::string_view id, Meaning meaning, std::string_view phrase,
                      std::string_view sample) {
  const MeaningRow& m = *find_meaning(meaning);
  WordingRow row{id, m.kind, m.cause, m.certainty, m.device_assert, "", "", phrase, sample};
  row.effect.meaning = meaning;
  return row;
}

std::span<const WordingRow> wording_rows() { return rows(); }

const WordingRow* at_end(const WordingRow& hint) {
  const auto found = std::ranges::find(ends(), hint.id, &WordingRow::id);
  return found == ends().end() ? nullptr : &*found;
}

const WordingRow* find_wording_id(std::string_view id) {
  const auto found = std::ranges::find(rows(), id, &WordingRow::id);
  return found == rows().end() ? nullptr : &*found;
}

CataloguePhrases phrases_with(std::span<const WordingRow* const> rows) {
  CataloguePhrases all;
  all.automaton.reserve(49152);
  std::unordered_map<std::string, bool> known;
  const auto add = [&](const std::string& key, CataloguePhrase::Kind kind, std::size_t index) {
    if (key.empty()) return;
    // Messages may share a phrase; names of assertions stand for the first row that has them.
    if (kind != CataloguePhrase::Kind::kWording &&
        !known.emplace(std::to_string(static_cast<int>(kind)) + key, true).second)
      return;
    all.automaton.add(key, static_cast<std::uint32_t>(all.phrases.size()));
    all.phrases.push_back({kind, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(key.size())});
  };
  for (std::size_t i = 0; i < rows.size(); ++i)
    add(fold(rows[i]->phrase), CataloguePhrase::Kind::kWording, i);
  const auto asserts = assert_rows();
  for (std::size_t i = 0; i < asserts.size(); ++i) {
    const std::string condition = fold(asserts[i].condition);
    if (condition.size() >= kMinCondition) add(condition, CataloguePhrase::Kind::kCondition, i);
    const std::string file = fold(asserts[i].file);
    if (file.size() >= kMinName) add(file, CataloguePhrase::Kind::kFile, i);
    const std::string kernel = fold(asserts[i].kernel);
    if (kernel.size() >= kMinName && asserts[i].kernel != "operator()")
      add(kernel, CataloguePhrase::Kind::kKernel, i);
  }
  const auto marker = [&](std::string_view text, Marker which) {
    add(fold(text), CataloguePhrase::Kind::kMarker, static_cast<std::size_t>(which));
  };
  marker("assertion", Marker::kAssertion);
  marker("block", Marker::kBlock);
  marker("thread", Marker::kThread);
  all.automaton.build();
  return all;
}

const CataloguePhrases& catalogue_phrases() {
  static const auto* const built = [] {
    std::vector<const WordingRow*> rows;
    for (const WordingRow& row : trapline::wording_rows()) rows.push_back(&row);
    return new CataloguePhrases(phrases_with(rows));
  }();
  return *built;
}

const WordingRow* find_wording(std::string_view text) {
  const CataloguePhrases& all = catalogue_phrases();
  Phrases::State state = 0;
  const WordingRow* best = nullptr;
  std::uint32_t longest = 0;
  const auto emit = [&](char c) {
    state = all.automaton.step(state, c);
    if (!all.automaton.ends(state)) return;
    all.automaton.each(state, [&](std::uint32_t id) {
      const CataloguePhrase& phrase = all.phrases[id];
      if (phrase.kind == CataloguePhrase::Kind::kWording && phrase.length > longest) {
        longest = phrase.length;
        best = &rows()[phrase.index];
      }
    });
  };
  TextFolder::feed(text, emit);
  return best;
}

}  // namespace trapline
