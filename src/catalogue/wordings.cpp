#include "catalogue/wordings.hpp"

#include <algorithm>
#include <unordered_map>

#include "catalogue/asserts.hpp"
#include "catalogue/fold.hpp"

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

constexpr WordingRow kRows[] = {
#define TRAPLINE_WORDING(...) Row{__VA_ARGS__},
#include "catalogue/wordings_cuda.def"
#include "catalogue/wordings_distributed.def"
#include "catalogue/wordings_frameworks.def"
#include "catalogue/wordings_host.def"
#undef TRAPLINE_WORDING
};

struct NumberedError {
  std::int64_t number;
  std::string_view id;
};

constexpr NumberedError kNumbers[] = {
#define TRAPLINE_CUDA_NUMBER(number, id) NumberedError{number, id},
#include "catalogue/cuda_numbers.def"
#undef TRAPLINE_CUDA_NUMBER
};

// Conditions and names that are too short or too common to stand for an assertion without their line.
constexpr std::size_t kMinCondition = 9;
constexpr std::size_t kMinName = 9;

}  // namespace

std::span<const WordingRow> wording_rows() { return kRows; }

const WordingRow* find_wording_id(std::string_view id) {
  const auto* const found =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.id == id; });
  return found == std::end(kRows) ? nullptr : found;
}

const WordingRow* find_cuda_error(std::int64_t number) {
  for (const NumberedError& error : kNumbers) {
    if (error.number == number) return find_wording_id(error.id);
  }
  return nullptr;
}

CataloguePhrases phrases_with(std::span<const WordingRow* const> rows) {
  CataloguePhrases all;
  all.automaton.reserve(24576);
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
    for (const WordingRow& row : kRows) rows.push_back(&row);
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
        best = &kRows[phrase.index];
      }
    });
  };
  TextFolder::feed(text, emit);
  return best;
}

}  // namespace trapline
