#include "catalogue/last_words.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <string>

#include "catalogue/patterns.hpp"

namespace trapline {
namespace {

// Words of failure. In the midst of a log they stand in any line of a healthy program; a healthy program does
// not end with them.
constexpr const char* kBad =
    R"re((?i)(?:^|[^\w./-])(?:errors?|fail(?:ed|ures?|s|ing)|fatal(?:ly)?|abort(?:ed|ing|s)|crash(?:ed|es|ing)|exceptions?|segfault(?:ed)?|panic(?:ked)?|unhandled|uncaught|unrecoverable)\b)re"
    R"re(|(?i)\b(?:(?:was|were|is|been|got|being|gets) (?:forcibly )?killed|killed by|connection refused|refused (?:to|by)|(?:permission|access) denied|(?:is|are|was|were|seems|be) (?:\w+ )?corrupt(?:ed)?|corrupted (?:file|data|header|archive|checkpoint|memory|image)|segmentation fault|core dumped|stack overflow|access violation|out of memory|timed out|could ?n(?:o|')t be|giving up|gave up|no longer (?:alive|running|responding)|not responding|(?:process|worker|rank|node|server|job|child|engine|kernel|thread|run|gpu|task|actor|subprocess|container|pod|session|runner|it)(?: \S+)? (?:has |have |just )?(?:died|vanished|disappeared))\b)re"
    R"re(|(?i)\b(?:exit(?:ed|s|ing)?|stopp?(?:ed|ing|s)|terminat(?:ed|es|ing)|shut(?:ting)? down|ended|quit(?:ting)?) (?:unexpectedly|abnormally|prematurely)\b|^\W*(?:unable to|cannot|can't|could not|couldn't|did not|failed)\b|: (?:unable to|cannot|can't|could not|couldn't)\b)re";
// ... that say so even where a line or two come behind.
constexpr const char* kSure =
    R"re(\b[A-Z]\w*(?:Error|Exception)\b|\bSIG(?:SEGV|ABRT|KILL|BUS|ILL|FPE|TRAP)\b|\b(?:NaNs?|nan) (?:detected|found|encountered|loss|in)\b|\bXid \d+\b)re"
    R"re(|(?i)\b(?:failed to|failed with|failed:|error (?:while|in|at|during|on|from|code)|crashed|fatal error|killed by)\b|: error:|(?:^|\s)error: ?[a-z])re"
    // Exit codes and signals by their number.
    R"re(|(?i)\b(?:exit(?:ed|ing|s)?(?: with)?(?: (?:code|status|value))?|return(?:ed)? code|rc|status code|signal)[ =:(]+-?(?:[1-9]|1[0-1]|1[6-9]|[2-9]\d|12[0-9]|1(?:0[0-9]|1[0-9]|3[1-9]|4[0-24-9])|2\d\d)\b)re";
// ... that are cut off at the end of the log.
constexpr const char* kCut =
    R"re((?:^|[\s:.])(?:[A-Z]\w+(?:Err(?:o)?|Exce(?:p(?:t(?:i(?:on?)?)?)?)?)|Segmentation f\w*|Traceback(?: \(.{0,24})?|Assert\w*|Abort\w*|Killed?)$|[\\|/-]\s*Terminated\s*$)re";
// An end and what it was for: no word of success, no count and no plan beside it excuses that.
constexpr const char* kEnded =
    R"re((?i)\b(?:abort(?:ed|ing|s)?|stopp(?:ed|ing)|stops|exit(?:ed|ing|s)?|quit(?:ting|s)?|end(?:ed|s|ing)|terminat(?:ed|es|ing)|halt(?:ed|ing|s)|died|killed|crashed|finished|completed?|done)(?: \w+)? (?:after|on|for|because of|due to|with|by|from) (?:(?:an?|the|its|first|some|fatal|unknown|unexpected|internal|several|many|[1-9]\d*) ){0,2}(?:errors?(?: [1-9]\d*\W*$)?|failures?|exceptions?|crash(?:es)?)(?:\W*$|[^\w\s=:<-]|\s+[a-z])|\b(?:recovery|handling|retr(?:y|ies)|attempts) failed\b|\bretr(?:y|ies) (?:were |was |are )?(?:exceeded|exhausted)\b|\b(?:cannot|can't|could not|couldn't|unable to) (?:be )?(?:continued?|recover(?:ed)?|proceed|go on)\b|\berror code[ =:]*[1-9]|\bfailed with (?:an? )?(?:error|code|status|exit|errno)\b)re";
// A good word that is denied is none.
constexpr const char* kDenied =
    R"re((?i)\b(?:not|\w+n't|cannot|never|unable to|failed to|without|before (?:it|he|they|this))(?: \w+)? (?:(?:be|been|being|yet|to|was|were|is|are) )?(?:continu\w*|recover\w*|retr[yi]\w*|finish\w*|complet\w*|succe\w*|install\w*|enabled|registered|passed|sav\w+|done|converg\w*|reached|exit\w*)\b)re";
// A word of failure that is part of a plan, a count or a measure: it is none, whatever else the line says.
constexpr const char* kNone =
    R"re((?i)\b(?:0|no|none|zero|without|any|non|not|never|if|when|on|until|after|handled?|handling|tolerat\w+|ignor\w+|possible|potential|known|max(?:imum)?)[ -](?:\w+ ){0,2}(?:errors?|fail\w*|exceptions?|crash\w*|killed|died|abort\w*|out of memory|oom|signals?|timed out)\b|\b(?:of|for)[ -](?:\w+ ){0,2}(?:errors?|failures?|exceptions?|crashes|signals?)\b)re"
    R"re(|(?i)\berror[- _](?:bars?|bounds?|functions?|rates?|metrics?|logs?|margins?|terms?|analysis|correction|estimates?|handl\w+|budget|tolerance|threshold|per|over|between|of|is|was)\b)re"
    R"re(|(?i)\b(?:errors?|failures?|failed|aborted|crashed|killed|exceptions?|timed out|corrupt(?:ed)?)(?: [a-z]+){0,2} *(?:[=:|] *-?\d+(?:\.\d+)?(?:e-?\d+)?%?|-?\d*\.\d+(?:e-?\d+)?%?|0|-?\d+%|[=:|]? *none)(?:$|[\s,;/)%]))re"
    R"re(|(?i)\b\d+ (?:errors?|failures?|failed|aborted|crashed|killed|exceptions?|timed out|refused|corrupt(?:ed)?)\b)re";
// One of many that failed, by its number: no count of failures.
constexpr const char* kOfMany =
    R"re((?i)\b(rank|worker|node|gpu|device|job|task|step|layer|attempt|trial|shard|chunk|batch|process|thread|request|stage|replica|actor|epoch|iteration)[ #:]+\d+ (?:has |have )?(failed|crashed|died|aborted|timed out)\b)re";
// Said of what went well, of what somebody else shall do; a measure.
constexpr const char* kFine =
    R"re((?i)\b(?:precision|recall|accuracy|f1|mse|mae|rmse)\b.*\d|\b(?:normally|successful(?:ly)?|succeeded|success|gracefully|passed|recover(?:ed|y|ing)|early stopping|converged|reached (?:the )?(?:max\w*|target|goal|end|best|\d)|retrying|will retry|retry (?:in|after|#?\d)|continu(?:es?|ing)|dropping|skipp\w+|instead|installed|enabled|registered|exit(?:ed|ing|s)?(?: with)?(?: code| status)?[ =:(]+0)\b|\?$)re"
    R"re(|(?i)\b(?:completed|finished|done|saved)\b(?:$|[^a-z]*$|.{0,40}(?:[^a-z](?:0|no) ))|^\W*(?:completed|finished|done|saved)\b)re";
// A line that says that it went well: what stands before it did not end the program.
constexpr const char* kWell =
    R"re((?i)\b(?:ok|okay|done|finished|complete[d]?|succe\w+|saved?|saving|bye|goodbye|passed|epoch|step|iter(?:ation)?|loss|acc(?:uracy)?|it/s|100%)\b|\b(?:exit(?:ed|ing|s)?(?: with)?(?: code| status)?[ =:(]+0)\b)re";

const RE2* compiled(const char* text) {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  return new RE2(text, options);
}

bool has(std::string_view line, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), pattern);
}

}  // namespace

LastLine judge_last(std::string_view line, bool is_last) {
  static const RE2* const bad = compiled(kBad);
  static const RE2* const sure = compiled(kSure);
  static const RE2* const cut = compiled(kCut);
  static const RE2* const fine = compiled(kFine);
  static const RE2* const well = compiled(kWell);
  static const RE2* const ended = compiled(kEnded);
  static const RE2* const denied = compiled(kDenied);
  static const RE2* const none = compiled(kNone);
  static const RE2* const of_many = compiled(kOfMany);
  if (is_last && has(line, *cut)) return LastLine::kBad;
  if (is_last && has(line, *ended)) {
    std::string rest(line);
    RE2::GlobalReplace(&rest, *ended, "it");  // "retry failed" tells of no retry
    if (!is_harmless(rest)) return LastLine::kBad;
  }
  const bool is_bad = has(line, *sure) || (is_last && has(line, *bad));
  if (is_bad) {
    std::string said(line);
    RE2::GlobalReplace(&said, *denied, "it");
    const bool is_fine = has(said, *fine);
    RE2::GlobalReplace(&said, *of_many, "\\1 \\2");
    RE2::GlobalReplace(&said, *none, "it");
    const bool is_still_bad = has(said, *sure) || (is_last && has(said, *bad));
    if (is_still_bad && !is_fine && !is_harmless(line)) return LastLine::kBad;
  }
  if (is_bad) return has(line, *well) ? LastLine::kWell : LastLine::kCalm;
  return has(line, *well) ? LastLine::kWell : LastLine::kOpen;
}

const WordingRow& last_words() {
  static const WordingRow row = wording_of("last.words", Meaning::kErrorLine, {}, {});
  return row;
}

const WordingRow& open_end() {
  static const WordingRow row = wording_of("last.open", Meaning::kOpenEnd, {}, {});
  return row;
}

const WordingRow& unfinished() {
  static const WordingRow row = wording_of("last.unfinished", Meaning::kUnfinished, {}, {});
  return row;
}

GradientNorm gradient_norm_in(std::string_view line) {
  static const RE2* const norm =
      compiled(R"re((?i)\b(?:grad(?:ient)?[ _]?norm|gnorm)["']?[^\w"'.]{1,4}["']?[-+]?(nan|inf|\d))re");
  // Megatron counts the steps that its scaler skipped, DeepSpeed, apex and fairseq say so; a scale other than
  // 1 means that there is a scaler.
  static const RE2* const skipped = compiled(
      R"re((?i)\bskipped iterations: +[1-9]|\boverflow\b|\bskipping (?:the )?(?:\w+ )?step\b|\bloss[ _]scale["']?[^\w"'.]{1,4}(?:[2-9]|1(?:\d|\.0*[1-9]|\.?\d*e\+?0*[1-9])))re");
  // Asked of every line: most have none of the words.
  constexpr std::string_view kWords[] = {"norm", "Norm", "NORM", "verflow", "VERFLOW", "kipp"};
  if (std::ranges::none_of(kWords, [&](std::string_view word) { return line.find(word) != line.npos; }))
    return GradientNorm::kNotSaid;
  if (has(line, *skipped)) return GradientNorm::kSkipped;
  std::string value;
  if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *norm, &value))
    return GradientNorm::kNotSaid;
  if (value.front() != 'n' && value.front() != 'N') return GradientNorm::kFinite;
  // Megatron without a scaler (bfloat16, float32) prints a scale of 1.
  static const RE2* const unscaled =
      compiled(R"re((?i)\bloss[ _]scale["']?[^\w"'.]{1,4}1(?:\.0+)?(?:[^\w.]|$))re");
  return has(line, *unscaled) ? GradientNorm::kNanUnscaled : GradientNorm::kNan;
}

bool reports_nan_loss(std::string_view line) {
  static const RE2* const nan = compiled(
      R"re((?i)(?:^|[^a-z])\w*(?:loss|cost|ppl|perplexity)(?:es)?\w*["']?(?:[^\w"'.]{1,4}| is )["']?[-+]?nan\b)re"
      // Darknet's average; the columns of losses behind a GPU's memory, as YOLOv5 and its heirs have them
      R"re(|\b-?nan avg\b|\b\d+(?:\.\d+)?G(?:\s+nan){2,})re"
      // llama.cpp's perplexity, chunk by chunk: "[1]nan,[2]nan,"
      R"re(|(?:\[\d+\]-?nan,)+\s*$)re");
  return has(line, *nan);
}

bool only_adds(std::string_view line) {
  // tensorflow: stream_executor/cuda/cuda_diagnostics.cc; print(torch.cuda.is_available())
  static const RE2* const adds = compiled(R"re(\bcuda_diagnostics\.cc:\d+\]|^\s*(?:False|None|cpu)\s*$)re");
  return has(line, *adds);
}

bool asks(std::string_view line) {
  static const RE2* const question = compiled(
      R"re(^\W*(?i:is|are|does|do|did|should|could|can|will|would|what|why|how|any|has|have|am)\b[^=:{}\[\]<>|]*[a-z)'"`]\s?\?\W*$)re"
      // ... and whatever else he says of himself
      R"re(|^[^=:{}\[\]<>|]*\b[Hh]ow (?:should|can|do|could) I\b|^[^=:{}\[\]<>|]*\bI(?:'m|'ve| am| have| had| think| wonder| guess| don't| do not| tried| get| got)\b[^={}\[\]<>|]*$)re"
      R"re(|^(?:Hi|Hello|Thanks|Thank you|Any (?:help|ideas?|suggestions?))\b[^={}\[\]<>|]*$)re");
  return has(line, *question);
}

const WordingRow& nan_loss() {
  static const WordingRow row = wording_of("loss.nan", Meaning::kNotFinite, {}, {});
  return row;
}

const WordingRow& piece_of_assertion() {
  static const WordingRow row = wording_of("assertion.piece", Meaning::kAsserted, {}, {});
  return row;
}

}  // namespace trapline
