#include "catalogue/patterns.hpp"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "catalogue/literals.hpp"

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
#include "catalogue/patterns_edge.def"
#include "catalogue/patterns_frameworks.def"
#include "catalogue/patterns_machine.def"
#include "catalogue/patterns_science.def"
#include "catalogue/patterns_servers.def"
#include "catalogue/patterns_torch.def"
#include "catalogue/patterns_values.def"
// Whatever the words are of, after all that know a program's own.

#include "catalogue/patterns_builds.def"
#include "catalogue/patterns_programs.def"
// Whatever is said in a form that many share.
#include "catalogue/patterns_forms.def"
// The first that matches counts: how it died comes after what tells why.

#include "catalogue/patterns_deaths.def"
#include "catalogue/patterns_ends.def"
#include "catalogue/patterns_frames.def"
#undef TRAPLINE_PATTERN
};

constexpr NumberForm kNumbers[] = {
#define TRAPLINE_NUMBER(library, pattern, sample) NumberForm{Library::library, pattern, sample},
#include "catalogue/numbers.def"
#undef TRAPLINE_NUMBER
};

// Words of GPUs and their software. What comes after one of them may be a short text of a status.
constexpr const char* kGpuWord =
    R"re((?:\b(?i:cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|cutensor|nccl|rccl|hip(?:blas|fft)?|rocm|rocblas|miopen|nvrtc|nvml|nvidia|nvrm|gpu|hsa|sycl|level[_ ]zero|thrust|cub|opencl|vulkan|optix|tensorrt|directml|d3d1[12]|wgpu|webgpu|oneapi|amdgpu|npu|musa|mlu|xpu)[\w:.\[\]#-]*|\bcu[A-Z]\w+|\b(?:musa|mc|tops)Error[A-Z]\w*|\b(?:MUSA|MC|TOPS)_ERROR_\w+|\bacl(?:nn|rt|op)\w+|_cuda\b))re";
constexpr const char* kFailed =
    R"re((?i)(?:\b|_)(?:errors?|fail(?:ed|ure|s)?|fatal|abort(?:ed|ing)?|crash(?:ed)?|cannot|can't|could not|couldn't|unable|lost|hang|hung)\b)re";
// Lines of programs that go on, and lines of source code.
constexpr const char* kHarmless =
    R"re((?:^|[\s\[|=":(])(?:WARNING|INFO|DEBUG|TRACE|NOTICE)(?:[\s\]:|",)]|$)|(?:^|[^L] |[\[|])WARN\b)re"
    R"re(|(?i:(?:^|[\s\[|=":(])(?:\w*warning|info|debug)[\]:|"])|^[IW]\d{4} |: [IW] (?:tensorflow|external|xla)/)re"
    R"re(|(?i)\bignor(?:e|ed|ing)\b|\bfall(?:s|ing)? ?back\b|\bskip|\bretry|\bdeprecat|\d/[\d.]+ GPU\b|(?:^|[\s(\[,:=])0 (?:errors|failures)\b|\bno (?:errors?|failures?)\b|\berrors?[ =:]+(?:0|none)\b)re"
    R"re(|(?i)\b(?:mse|mae|rmse|l1|l2|test|train(?:ing)?|val(?:idation)?|eval|mean|max|abs(?:olute)?|rel(?:ative)?|squared|average)[ _]errors?\b)re"
    R"re(|\berrors?[ =:]+\d+\.\d|\bno (?:\w+ )?errors?\b|\berror code:? 0\b|\berror[ -](?:check|rate))re"
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

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return low;
}

constexpr std::size_t kLeast = 4;  // bytes of a literal

// Literals, by their first bytes: what a line holds of them, in one pass over it.
class Literals {
 public:
  void add(std::string literal, int pattern) {
    heads_[head_of(literal.data())].push_back(static_cast<int>(all_.size()));
    all_.push_back({std::move(literal), pattern});
  }

  // `line`: in small letters.
  void in(std::string_view line, std::vector<int>& patterns) const {
    for (std::size_t at = 0; at + kLeast <= line.size(); ++at) {
      for (const int i : heads_[head_of(line.data() + at)]) {
        const auto& [text, pattern] = all_[static_cast<std::size_t>(i)];
        if (line.substr(at, text.size()) == text) patterns.push_back(pattern);
      }
    }
  }

 private:
  static constexpr std::size_t kHeads = 4096;

  static std::size_t head_of(const char* text) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, text, kLeast);
    return bytes * 2654435761U >> 20U;  // Knuth's multiplicative hash, 12 bits of it
  }

  struct Literal {
    std::string text;
    int pattern;
  };
  std::vector<Literal> all_;
  std::vector<std::vector<int>> heads_{kHeads};
};

// Whatever is looked for: first the forms of numbers, then the rows, then the word of a GPU that texts and
// troubles need. Few are compiled: those that a line has the literal of, and in one set those that need none.
class EveryPattern {
 public:
  EveryPattern() : set_(options(), RE2::UNANCHORED) {
    for (const NumberForm& form : kNumbers) add("(?i:" + std::string(form.pattern) + ")", form.pattern);
    for (const PatternRow& row : rows()) add(std::string(row.pattern), row.pattern);
    add(kGpuWord, {});
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
    if (!set_.Match(piece(line), &matches, &error) && error.kind != RE2::Set::kNoError) {
      matches.resize(in_set_.size());  // the set's memory did not suffice: each may be it
      std::iota(matches.begin(), matches.end(), 0);
    }
    for (int& i : matches) i = in_set_[static_cast<std::size_t>(i)];
    literals_.in(lower(line), matches);
    std::ranges::sort(matches);
    matches.erase(std::unique(matches.begin(), matches.end()), matches.end());
    const int numbers = static_cast<int>(std::size(kNumbers));
    const int last = static_cast<int>(texts_.size()) - 1;
    for (const int i : matches) {
      int& first = i < numbers ? found.number : found.row;
      if (i < last && first >= 0) continue;
      if (!RE2::PartialMatch(piece(line), one(i))) continue;
      if (i == last)
        found.gpu_word = true;
      else
        first = i < numbers ? i : i - numbers;
    }
    return found;
  }

  const RE2& number(int form) const { return one(form); }
  const RE2& gpu() const { return one(static_cast<int>(texts_.size()) - 1); }

 private:
  // A counted gap multiplies the states of the whole set: in there it is any gap, and what is found so is
  // asked again.
  static std::string without_counts(std::string pattern) {
    static const RE2* const gap = new RE2(R"re(\{0,\d+\}\??)re");
    RE2::GlobalReplace(&pattern, *gap, "*");
    return pattern;
  }

  // `inner`: the pattern whose literals count; empty: it has none.
  void add(const std::string& pattern, std::string_view inner) {
    const int index = static_cast<int>(texts_.size());
    texts_.push_back(pattern);
    one_by_one_.emplace_back();
    std::vector<std::string> needed;
    if (!inner.empty()) needed = needed_literals(inner, kLeast);
    for (std::string& literal : needed) literals_.add(std::move(literal), index);
    if (!needed.empty()) return;
    set_.Add(without_counts(pattern), nullptr);
    in_set_.push_back(index);
  }

  // Compiled when it is asked for the first time: few are, and all of them take longer than a log.
  const RE2& one(int index) const {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<RE2>& made = one_by_one_[static_cast<std::size_t>(index)];
    if (made == nullptr) made = std::make_unique<RE2>(texts_[static_cast<std::size_t>(index)], options());
    return *made;
  }

  RE2::Set set_;
  std::vector<int> in_set_;  // which pattern it is, of those in the set
  Literals literals_;
  std::vector<std::string> texts_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<RE2>> one_by_one_;
};

const WordingRow* by_number(std::string_view line, int form, const RE2& pattern) {
  std::string digits;
  if (!RE2::PartialMatch(piece(line), pattern, &digits)) return nullptr;
  const bool is_hex = digits.starts_with("0x") || digits.starts_with("0X");
  const std::size_t prefix = is_hex ? 2 : 0;
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  if (std::from_chars(digits.data() + prefix, end, number, is_hex ? 16 : 10).ptr != end) return nullptr;
  const StatusRow* const status = find_status(kNumbers[form].library, number);
  return status == nullptr ? nullptr : &wording_of_status(*status);
}

// The texts of statuses that count in a line, in small letters. Backward: a text before those that it begins
// with.
using Texts = std::map<std::string, const WordingRow*, std::greater<>>;
const Texts& texts_in_lines() {
  static const auto* const texts = [] {
    auto* const all = new Texts;
    for (const StatusRow& row : status_rows()) {
      if (!row.text.empty() && row.stands == TextStands::kInLine)
        all->emplace(lower(row.text), &wording_of_status(row));
    }
    return all;
  }();
  return *texts;
}

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// Whether what begins there is set off from what stands before: "error: ", "(", "by ".
bool is_set_off(std::string_view low, std::size_t at) {
  std::string_view before = low.substr(0, at);
  if (before.ends_with("by ") && (before.size() == 3 || is_one_of(before[before.size() - 4], " (,")))
    return true;
  while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
  return !before.empty() && is_one_of(before.back(), ":'\"(,]>-");
}

// A short text of a status. It counts in three places, in any case of letters: set off behind a word that
// speaks of a GPU ("CUDA error at cuCtxCreate: Out of memory"), behind such a word that failed ("CUDA error
// in func init at line 126 out of memory"), and before the call that it is the answer of ("Invalid value in
// cuCtxPushCurrent(...)").
const WordingRow* by_text(std::string_view line, const RE2& gpu) {
  const std::string low = lower(line);
  std::size_t at = std::string::npos;
  const WordingRow* row = nullptr;
  const auto look = [&](auto&& counts) {
    for (const auto& [text, wording] : texts_in_lines()) {
      for (std::size_t i = low.find(text); i < at; i = low.find(text, i + 1)) {
        const std::size_t end = i + text.size();
        if ((end < low.size() && !is_one_of(low[end], "'\").,;:[ \t")) || !counts(i, end)) continue;
        at = i;
        row = wording;
      }
    }
    return row != nullptr;
  };
  static const RE2* const call = new RE2(
      R"re(^ (?:in|at|from|calling|by) (?:(?:cu|hip|optix|nvrtc|cl|ze|musa)[A-Z]\w+|(?:CUDA|HIP|OptiX|Metal) queue))re",
      options());
  const auto answers_call = [&](std::size_t begin, std::size_t end) {
    return (begin == 0 || is_set_off(low, begin)) && RE2::PartialMatch(piece(line.substr(end)), *call);
  };
  if (look(answers_call)) return row;
  re2::StringPiece behind = piece(line);
  if (!RE2::FindAndConsume(&behind, gpu)) return nullptr;
  const auto from = static_cast<std::size_t>(behind.data() - line.data());
  if (look([&](std::size_t begin, std::size_t) { return begin >= from && is_set_off(low, begin); }))
    return row;
  static const RE2* const failed = new RE2(R"re(\b(?:error|fail\w*|exception|fatal)\b)re", options());
  static const RE2* const host = new RE2(R"re(\b(?:host|cpu|ram|pinned|system|swap|not)\b)re", options());
  const std::string_view rest = std::string_view(low).substr(from);
  if (RE2::PartialMatch(piece(rest), *host) || is_harmless(line)) return nullptr;
  look([&](std::size_t begin, std::size_t) {
    return begin > from && low[begin - 1] == ' ' &&
           RE2::PartialMatch(piece(rest.substr(0, begin - from)), *failed);
  });
  return row;
}

// A status of a runtime that was made after CUDA's: MUSA (Moore Threads), MACA (MetaX), TopsRider (Enflame)
// have CUDA's enumeration under another prefix.
const WordingRow* by_name_of_cuda(std::string_view line) {
  static const RE2* const like =
      new RE2(R"re(\b(?:(?:musa|mc|tops)(Error[A-Z]\w+)|(?:MUSA|MC|TOPS)(_ERROR_[A-Z_]+))\b)re", options());
  std::string runtime, driver;
  if (!RE2::PartialMatch(piece(line), *like, &runtime, &driver)) return nullptr;
  const std::string name = runtime.empty() ? "CUDA" + driver : "cuda" + runtime;
  const auto rows = status_rows();
  const auto found = std::ranges::find(rows, std::string_view(name), &StatusRow::name);
  return found == rows.end() ? nullptr : &wording_of_status(*found);
}

// Of a line with a word of GPUs.
const WordingRow* trouble(std::string_view line) {
  static const RE2* const failed = new RE2(kFailed, options());
  static const WordingRow row = wording_of("gpu.trouble", Meaning::kSomething, {}, {});
  return RE2::PartialMatch(piece(line), *failed) && !is_harmless(line) ? &row : nullptr;
}

}  // namespace

bool is_harmless(std::string_view line) {
  static const RE2* const harmless = new RE2(kHarmless, options());
  return RE2::PartialMatch(piece(line), *harmless);
}

std::span<const PatternRow> pattern_rows() { return rows(); }

const WordingRow& error_line() {
  static const WordingRow row = wording_of("level.error", Meaning::kErrorLine, {}, {});
  return row;
}

std::span<const NumberForm> number_forms() { return kNumbers; }

bool speaks_of_gpu(std::string_view text) {
  // A variable of the environment and a path are names, and no word about the GPU; a status is one.
  static const RE2* const capitals = new RE2(
      R"re((\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\S*[/\\]\S+|\b[\w-]+\.(?:cuh?|cc|cpp|hp?p?|py|so|dll)\b))re",
      options());
  static const RE2* const gpu = new RE2(kGpuWord, options());
  static const RE2* const status = new RE2("ERR|STATUS|FAIL|RESULT", options());
  std::string rest;
  re2::StringPiece left = piece(text);
  re2::StringPiece name;
  const char* from = text.data();
  while (RE2::FindAndConsume(&left, *capitals, &name)) {
    if (!RE2::PartialMatch(name, *status)) {
      rest.append(from, name.data());
      from = name.data() + name.size();
    }
  }
  rest.append(from, text.data() + text.size());
  return RE2::PartialMatch(rest, *gpu);
}

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
  if (const WordingRow* const status = by_name_of_cuda(line)) return status;
  if (const WordingRow* const status = by_text(line, patterns->gpu())) return status;
  const WordingRow* const other = trouble(line);
  return other != nullptr ? other : row;
}

}  // namespace trapline
