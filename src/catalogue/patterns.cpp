#include "catalogue/patterns.hpp"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace trapline {
namespace {

struct Pattern {
  std::string_view id;
  Meaning meaning;
  std::string_view pattern, sample;
};

constexpr Pattern kPatterns[] = {
#define TRAPLINE_PATTERN(id, meaning, pattern, sample) Pattern{id, Meaning::meaning, pattern, sample},
#include "catalogue/patterns.def"
#include "catalogue/patterns_deaths.def"
#undef TRAPLINE_PATTERN
};

constexpr NumberForm kNumbers[] = {
#define TRAPLINE_NUMBER(library, pattern, sample) NumberForm{Library::library, pattern, sample},
#include "catalogue/numbers.def"
#undef TRAPLINE_NUMBER
};

// Words of GPUs and their software. What comes after one of them may be a short text of a status.
constexpr const char* kGpuWord =
    R"re((?:\b(?i:cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|cutensor|nccl|rccl|hip(?:blas|fft)?|rocm|rocblas|miopen|nvrtc|nvml|nvidia|nvrm|gpu|hsa|sycl|level[_ ]zero|thrust|cub)[\w:.\[\]#-]*|\bcu[A-Z]\w+|_cuda\b))re";
constexpr const char* kFailed =
    R"re((?i)(?:\b|_)(?:errors?|fail(?:ed|ure|s)?|fatal|abort(?:ed|ing)?|crash(?:ed)?|cannot|can't|could not|couldn't|unable|lost|hang|hung)\b)re";
// Lines of programs that go on, and lines of source code.
constexpr const char* kHarmless =
    R"re((?:^|[\s\[|=":(])(?:WARNING|INFO|DEBUG|TRACE|NOTICE)(?:[\s\]:|",)]|$)|(?:^|[^L] |[\[|])WARN\b)re"
    R"re(|(?i:(?:^|[\s\[|=":(])(?:\w*warning|info|debug)[\]:|"])|^[IW]\d{4} |: [IW] (?:tensorflow|external|xla)/)re"
    R"re(|(?i)\bignor(?:e|ed|ing)\b|\bfall(?:s|ing)? ?back\b|\bskip|\bretry|\bdeprecat|\b(?:0|no) (?:errors?|failures?)\b|\berrors?[ =:]+(?:0|none)\b)re"
    R"re(|^\s*(?:File "|frame #|#\d|raise |except |if |return |assert |try:|//))re";

RE2::Options options(bool any_case) {
  RE2::Options made;
  made.set_encoding(RE2::Options::EncodingLatin1);
  made.set_log_errors(false);
  made.set_case_sensitive(!any_case);
  made.set_max_mem(std::int64_t{32} << 20U);
  return made;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

// Many patterns in one pass.
class PatternSet {
 public:
  PatternSet(const std::vector<std::string_view>& patterns, bool any_case)
      : set_(options(any_case), RE2::UNANCHORED) {
    for (const std::string_view pattern : patterns) {
      set_.Add(piece(pattern), nullptr);
      one_by_one_.push_back(std::make_unique<RE2>(piece(pattern), options(any_case)));
    }
    if (!patterns.empty()) set_.Compile();
  }

  // The first one that the line matches; -1: none.
  int first(std::string_view line) const {
    if (one_by_one_.empty()) return -1;
    std::vector<int> found;
    RE2::Set::ErrorInfo error{};
    if (set_.Match(piece(line), &found, &error)) return *std::ranges::min_element(found);
    if (error.kind == RE2::Set::kNoError) return -1;
    for (std::size_t i = 0; i < one_by_one_.size(); ++i) {  // the set's memory did not suffice
      if (RE2::PartialMatch(piece(line), *one_by_one_[i])) return static_cast<int>(i);
    }
    return -1;
  }

  const RE2& at(int index) const { return *one_by_one_[static_cast<std::size_t>(index)]; }

 private:
  RE2::Set set_;
  std::vector<std::unique_ptr<RE2>> one_by_one_;
};

const std::vector<PatternRow>& rows() {
  static const std::vector<PatternRow> all = [] {
    std::vector<PatternRow> made;
    for (const Pattern& p : kPatterns) made.push_back({wording_of(p.id, p.meaning, {}, p.sample), p.pattern});
    return made;
  }();
  return all;
}

// The rows of statuses as messages, by their place in the table.
const WordingRow& wording_of_status(const StatusRow& status) {
  static const std::vector<WordingRow> all = [] {
    std::vector<WordingRow> made;
    for (const StatusRow& row : status_rows()) {
      const std::string_view id = row.name.empty() ? row.text : row.name;
      made.push_back(wording_of(id, row.meaning, {}, id));
    }
    return made;
  }();
  return all[static_cast<std::size_t>(&status - status_rows().data())];
}

const WordingRow* by_number(std::string_view line) {
  static const PatternSet* const forms = [] {
    std::vector<std::string_view> patterns;
    for (const NumberForm& form : kNumbers) patterns.push_back(form.pattern);
    return new PatternSet(patterns, true);
  }();
  const int form = forms->first(line);
  std::int64_t number = 0;
  if (form < 0 || !RE2::PartialMatch(piece(line), forms->at(form), &number)) return nullptr;
  const StatusRow* const status = find_status(kNumbers[form].library, number);
  return status == nullptr ? nullptr : &wording_of_status(*status);
}

// A short text of a status, behind a word that speaks of a GPU and set off from it.
const WordingRow* by_text(std::string_view line) {
  static const auto* const texts = [] {
    auto* const all = new std::unordered_map<std::string, const WordingRow*>;
    for (const StatusRow& row : status_rows()) {
      if (!row.text.empty() && row.stands == TextStands::kInLine)
        all->emplace(std::string(row.text), &wording_of_status(row));
    }
    return all;
  }();
  static const RE2* const pattern = [] {
    std::string alternatives;
    for (const auto& [text, row] : *texts)
      alternatives += (alternatives.empty() ? "" : "|") + RE2::QuoteMeta(text);
    return new RE2(std::string(kGpuWord) + R"re(.{0,160}?(?:[:'"(,\]>-]\s*|\bby )()re" +
                       (alternatives.empty() ? "[^\\x00-\\xff]" : alternatives) +
                       R"re()(?:['").,;\s\[]|$))re",
                   options(false));
  }();
  std::string text;
  if (!RE2::PartialMatch(piece(line), *pattern, &text)) return nullptr;
  const auto found = texts->find(text);
  return found == texts->end() ? nullptr : found->second;
}

const WordingRow* trouble(std::string_view line) {
  static const RE2* const gpu = new RE2(kGpuWord, options(false));
  static const RE2* const failed = new RE2(kFailed, options(false));
  static const RE2* const harmless = new RE2(kHarmless, options(false));
  static const WordingRow row = wording_of("gpu.trouble", Meaning::kSomething, {}, {});
  const re2::StringPiece text = piece(line);
  return RE2::PartialMatch(text, *failed) && RE2::PartialMatch(text, *gpu) &&
                 !RE2::PartialMatch(text, *harmless)
             ? &row
             : nullptr;
}

}  // namespace

std::span<const PatternRow> pattern_rows() { return rows(); }

std::span<const NumberForm> number_forms() { return kNumbers; }

const WordingRow* find_pattern(std::string_view line) {
  if (const WordingRow* const row = by_number(line)) return row;
  static const PatternSet* const patterns = [] {
    std::vector<std::string_view> all;
    for (const PatternRow& row : rows()) all.push_back(row.pattern);
    return new PatternSet(all, false);
  }();
  if (const int found = patterns->first(line); found >= 0)
    return &rows()[static_cast<std::size_t>(found)].wording;
  if (const WordingRow* const row = by_text(line)) return row;
  return trouble(line);
}

}  // namespace trapline
