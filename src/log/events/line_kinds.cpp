#include "log/events/line_kinds.hpp"

#include <re2/re2.h>

namespace trapline {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

// Python's warnings, and lines of glog, of TensorRT and of the X server (os/log.c: what its marks mean) at
// that level. Levels of loggers are none: programs log what ends them as they like.
bool is_warning(std::string_view text) {
  static const RE2* const pattern = new RE2(
      R"re((?:^|[\s:.])\w*Warning: |^W\d{4} \d|: W (?:tensorflow|external|xla)/|\[TRT\] \[W\]|^(?:\[ *[\d.]+\] *)?\((?:II|WW|--|==|\*\*|\+\+)\) )re"
      // A program that says how it goes on.
      R"re(|(?i)\bretrying (?:with|in|using)\b|[;,.:]\s*(?:using|trying|falling back to) (?:batch[ -_]?size|bs|CPU|a smaller)\b)re",
      RE2::Latin1);
  // TensorFlow logs a failed operation at that level, too (op_kernel.cc), Node an exception that is lost.
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern) &&
         !contains(text, "OP_REQUIRES failed") && !contains(text, " in summary histogram") &&
         !contains(text, "UnhandledPromiseRejection");
}

// "/opt/net.py:12: UserWarning: ..." (warnings.formatwarning)
bool is_pythons_warning(std::string_view text) {
  static const RE2* const pattern = new RE2(R"re(\.py:\d+: \w*Warning: )re", RE2::Latin1);
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern);
}

// Whether the line only speaks about an error: advice, a question, the help of an option, a table of what
// errors mean, the subject of a commit. Whoever reports one begins otherwise.
bool is_about_errors(std::string_view text) {
  static const RE2* const about = new RE2(
      R"re(^[\s#>*/-]*(?:(?i:(?:note|tip|hint|info|q(?:uestion)?|a(?:nswer)?)\s*:\s*)?(?:[Ii]f|[Ww]hen|[Ii]n case) (?:you|your|the|this|it|there|CUDA|an?)\b)re"
      R"re(|(?i:(?:note|tip|hint|q|a)\s*:\s*)?(?:To (?:avoid|prevent|fix|solve|work around) (?:(?:an?|the|this|these|such|any) )?(?:CUDA|GPU|OOM|out[ -]of|errors?|illegal|device-side|NCCL (?:errors?|time))|How (?:to|do|can)|What does|What is|Why (?:do|does|is))\b))re"
      // "because if I do not do that, it will reply an error"
      R"re(|\b(?:if|unless) (?:I|we) (?:do not|don't|did not|didn't|do|use|set|run)\b.{0,80}\b(?:will|would)\b)re"
      R"re(|^\s*(?:-\w(?: \w+)?, )?--[a-z][\w-]+(?:[ =]\S+)?\s{2,}[A-Z])re"
      R"re(|^\s*(?:HEAD is now at|Previous HEAD position was|[*|\\/ ]*commit) [0-9a-f]{3,40}\b|^[*|\\/ ]+[0-9a-f]{7,12} (?:\([^)]*\) )?\w)re"
      R"re(|^\|(?:[^|]*\|){3,}\s*$)re",
      RE2::Latin1);
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *about);
}

// Whether both lines begin with the same word of a logger ("amdgpu 0000:2b:00.0: ..."): then each is its own.
bool begins_alike(std::string_view one, std::string_view other) {
  const std::size_t end = one.find_first_of(": ");
  return end != std::string_view::npos && end >= 3 && other.substr(0, end + 1) == one.substr(0, end + 1);
}

// "srun: error: task 0: Killed", "llama_model_load: ...": a program's name and a level, a C program's
// function.
bool names_its_program(std::string_view text) {
  static const RE2* const own = new RE2(
      R"re(^[\w.-]+: (?:error|fatal|warning|info|critical)\b|^(?:[a-z]\w*_\w+|main): )re", RE2::Latin1);
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *own);
}

}  // namespace trapline
