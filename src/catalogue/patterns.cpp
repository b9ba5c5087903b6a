#include "catalogue/patterns.hpp"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
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
#include "catalogue/patterns_frameworks.def"
#include "catalogue/patterns_machine.def"
#include "catalogue/patterns_servers.def"
#include "catalogue/patterns_torch.def"
// The first that matches counts: how it died comes after what tells why.

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
    R"re(|(?i)\bignor(?:e|ed|ing)\b|\bfall(?:s|ing)? ?back\b|\bskip|\bretry|\bdeprecat|\d/[\d.]+ GPU\b|\b(?:0|no) (?:errors?|failures?)\b|\berrors?[ =:]+(?:0|none)\b)re"
    R"re(|(?i)\b(?:mse|mae|rmse|l1|l2|test|train(?:ing)?|val(?:idation)?|eval|mean|max|abs(?:olute)?|rel(?:ative)?|squared|average)[ _]errors?\b)re"
    R"re(|\berrors?[ =:]+\d+\.\d|\bno (?:\w+ )?errors?\b|\berror code:? 0\b|\berror[ -]check)re"
    R"re(|^\s*(?:File "|frame #|#\d|raise |except |if |return |assert |try:|//))re";

RE2::Options options() {
  RE2::Options made;
  made.set_encoding(RE2::Options::EncodingLatin1);
  made.set_log_errors(false);
  made.set_max_mem(std::int64_t{32} << 20U);
  return made;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

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

// Whatever is looked for, in one pass over the line: an ordinary error line, of which a log may have
// millions, costs no second one. First the forms of numbers, then the rows, then the word of a GPU that texts
// and troubles need.
class EveryPattern {
 public:
  EveryPattern() : set_(options(), RE2::UNANCHORED) {
    for (const NumberForm& form : kNumbers) add("(?i:" + std::string(form.pattern) + ")");
    for (const PatternRow& row : rows()) add(std::string(row.pattern));
    add(kGpuWord);
    set_.Compile();
  }

  struct Found {
    int number = -1, row = -1;  // the first of each; -1: none
    bool gpu_word = false;
  };

  Found in(std::string_view line) const {
    std::vector<int> matches;
    RE2::Set::ErrorInfo error{};
    Found found;
    if (!set_.Match(piece(line), &matches, &error)) {
      if (error.kind == RE2::Set::kNoError) return found;
      matches.resize(one_by_one_.size());  // the set's memory did not suffice: each may be it
      std::iota(matches.begin(), matches.end(), 0);
    }
    std::ranges::sort(matches);
    const int numbers = static_cast<int>(std::size(kNumbers));
    const int last = static_cast<int>(one_by_one_.size()) - 1;
    for (const int i : matches) {
      int& first = i < numbers ? found.number : found.row;
      if (i < last && first >= 0) continue;
      if (!RE2::PartialMatch(piece(line), *one_by_one_[static_cast<std::size_t>(i)])) continue;
      if (i == last)
        found.gpu_word = true;
      else
        first = i < numbers ? i : i - numbers;
    }
    return found;
  }

  const RE2& number(int form) const { return *one_by_one_[static_cast<std::size_t>(form)]; }

 private:
  // A counted gap multiplies the states of the whole set: in there it is any gap, and what is found so is
  // asked again.
  static std::string without_counts(std::string pattern) {
    static const RE2* const gap = new RE2(R"re(\{0,\d+\}\??)re");
    RE2::GlobalReplace(&pattern, *gap, "*");
    return pattern;
  }

  void add(const std::string& pattern) {
    set_.Add(without_counts(pattern), nullptr);
    one_by_one_.push_back(std::make_unique<RE2>(pattern, options()));
  }

  RE2::Set set_;
  std::vector<std::unique_ptr<RE2>> one_by_one_;
};

const WordingRow* by_number(std::string_view line, int form, const RE2& pattern) {
  std::int64_t number = 0;
  if (!RE2::PartialMatch(piece(line), pattern, &number)) return nullptr;
  const StatusRow* const status = find_status(kNumbers[form].library, number);
  return status == nullptr ? nullptr : &wording_of_status(*status);
}

// A short text of a status, behind a word that speaks of a GPU and set off from it.
const WordingRow* by_text(std::string_view line) {
  static const auto* const texts = [] {
    // Backward: a text before those that it begins with.
    auto* const all = new std::map<std::string, const WordingRow*, std::greater<>>;
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
    return new RE2(R"re((?:[:'"(,\]>-]\s*|\bby )()re" + alternatives + R"re()(?:['").,;\s\[]|$))re",
                   options());
  }();
  static const RE2* const gpu = new RE2(kGpuWord, options());
  re2::StringPiece behind = piece(line);
  std::string text;
  if (!RE2::FindAndConsume(&behind, *gpu) || !RE2::PartialMatch(behind, *pattern, &text)) return nullptr;
  const auto found = texts->find(text);
  return found == texts->end() ? nullptr : found->second;
}

// Of a line with a word of GPUs.
const WordingRow* trouble(std::string_view line) {
  static const RE2* const failed = new RE2(kFailed, options());
  static const RE2* const harmless = new RE2(kHarmless, options());
  static const WordingRow row = wording_of("gpu.trouble", Meaning::kSomething, {}, {});
  const re2::StringPiece text = piece(line);
  return RE2::PartialMatch(text, *failed) && !RE2::PartialMatch(text, *harmless) ? &row : nullptr;
}

}  // namespace

std::span<const PatternRow> pattern_rows() { return rows(); }

std::span<const NumberForm> number_forms() { return kNumbers; }

bool checks_status(std::string_view line) {
  static const RE2* const success =
      new RE2(R"re((?:cuda|hip|nccl|rccl)Success\b|(?:CUDA|NVML|NVRTC|STATUS)_SUCCESS\b)re", RE2::Latin1);
  return RE2::PartialMatch(piece(line), *success);
}

const WordingRow* find_pattern(std::string_view line) {
  static const auto* const patterns = new EveryPattern;
  const EveryPattern::Found found = patterns->in(line);
  if (found.number >= 0) {
    if (const WordingRow* const row = by_number(line, found.number, patterns->number(found.number)))
      return row;
  }
  const WordingRow* row = found.row < 0 ? nullptr : &rows()[static_cast<std::size_t>(found.row)].wording;
  // An assertion of a status is the status, and no check of the host.
  if (row != nullptr && row->effect.meaning == Meaning::kHostCheck && checks_status(line)) row = nullptr;
  const bool tells = row != nullptr && row->effect.meaning != Meaning::kErrorLine;
  if (tells || !found.gpu_word) return row;
  if (const WordingRow* const status = by_text(line)) return status;
  const WordingRow* const other = trouble(line);
  return other != nullptr ? other : row;
}

}  // namespace trapline
