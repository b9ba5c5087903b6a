#include "catalogue/ends.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace trapline {
namespace {

constexpr EndForm kForms[] = {
#define TRAPLINE_END(id, weight, pattern, sample) EndForm{id, EndWeight::weight, pattern, sample},
#include "catalogue/ends.def"
#undef TRAPLINE_END
};

constexpr std::size_t kMost = 1000;  // bytes: a longer line is data, and costs no more than its beginning

// All forms of one weight as one pattern, compiled when a log asks for it: few logs do.
std::unique_ptr<RE2> all_of(EndWeight weight) {
  std::string any;
  for (const EndForm& form : kForms) {
    if (form.weight != weight) continue;
    any += any.empty() ? "(?:" : "|(?:";
    any.append(form.pattern).append(")");
  }
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  return std::make_unique<RE2>(any, options);
}

bool has(std::string_view line, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), pattern);
}

enum class Judged : std::uint8_t { kOrdinary, kNot, kOpen };

Judged judge(std::string_view line) {
  static const auto* const never = all_of(EndWeight::kNever).release();
  static const auto* const surely = all_of(EndWeight::kSurely).release();
  static const auto* const complaint = all_of(EndWeight::kComplains).release();
  if (has(line, *never)) return Judged::kNot;
  if (has(line, *surely)) return Judged::kOrdinary;
  // A word in an address or a path is a name.
  static const RE2* const names = new RE2(R"re(\S*(?:://|/|\\)\S+)re", RE2::Latin1);
  std::string words(line);
  RE2::GlobalReplace(&words, *names, "/");
  // An aside: what a list does not hold.
  static const RE2* const aside = new RE2(R"re((?i)\((?:not|no|without|never)\b[^()]*\))re", RE2::Latin1);
  RE2::GlobalReplace(&words, *aside, "");
  return has(words, *complaint) ? Judged::kNot : Judged::kOpen;
}

}  // namespace

std::span<const EndForm> end_forms() { return kForms; }

bool ends_ordinarily(std::string_view line) {
  const Judged judged = judge(line.substr(0, kMost));
  if (judged != Judged::kOpen) return judged == Judged::kOrdinary;
  static const auto* const perhaps = all_of(EndWeight::kPerhaps).release();
  return has(line.substr(0, kMost), *perhaps);
}

bool stops_midway(std::string_view line) {
  // tqdm: std.py, format_meter. The last refresh of a bar that was closed may be a little short of its total.
  constexpr int kNearlyAll = 95;  // per cent
  static const RE2* const bar = new RE2(
      R"re((\d{1,3})%\|[^|]*\|\s*\d+(?:\.\d+)?[kMG]?/\d+(?:\.\d+)?[kMG]? \[[^\]]*\]?[^%]*$)re", RE2::Latin1);
  int done = 0;
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *bar, &done) && done < kNearlyAll;
}

bool complains(std::string_view line) { return judge(line.substr(0, kMost)) == Judged::kNot; }

}  // namespace trapline
