// Sizes that the program itself counts, and labels with gaps: where a larger size would hold nothing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/frame.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

bool ViolationWriter::write_counted_size() {
  if (!above() || facts.made.empty() || facts.made.back().whole || layer().empty()) return false;
  static constexpr std::array kCounts{"len(",   "nunique(",    "unique(", ".num(",
                                      "count(", "vocab_size(", "max("};
  const MadeAt& size = facts.made.back();
  const bool counts = std::ranges::any_of(
      kCounts, [&](std::string_view word) { return size.text.find(word) != std::string::npos; });
  if (!counts) return false;
  const std::string where = fmt::format("`{}` ({})", size.text, file_and_line(size.file, size.line));
  const char* unit = is_class() ? "output" : "row";
  const bool next_alone = only(hi()) && seen_max() == hi();
  if (next_alone && size.text.find("max(") != std::string::npos)
    fix(fmt::format("{} is the highest number, and no count: from 0 on there is one more, {}", where,
                    next(hi())));
  else if (next_alone)
    fix(fmt::format(
        "{} says how many there are, and {} is the next number: where one number is kept for what is not "
        "counted ({}), give {} one {} more",
        where, hi(), is_class() ? "background, no class" : "none, padding, an unknown one", layer(), unit));
  else
    fix(fmt::format(
        "{} says how many there are: see why {} goes beyond it: numbered by another list, data that "
        "were not counted, or a count that is too low (of different numbers, where these have gaps)",
        where, users()));
  return true;
}

bool ViolationWriter::is_sparse() const {
  const auto& seen = facts.seen;
  if (!is_class() || !above() || !seen || !facts.source.empty()) return false;
  const std::optional<std::int64_t> kinds = seen->dataset ? seen->kinds : seen->here;
  if (!kinds) return false;
  constexpr std::int64_t kEach = 8, kFew = 8;
  const std::int64_t range = seen_max() + 1;
  const bool as_many = *kinds == hi() && hi() <= kFew;  // of many one may be missing by chance
  return seen->gap && seen_count() >= kEach * range && (4 * *kinds < 3 * range || as_many);
}

void ViolationWriter::write_sparse() {
  const std::int64_t kinds = (facts.seen->dataset ? facts.seen->kinds : facts.seen->here).value_or(0);
  fix(fmt::format(
      "only {} different numbers occur of 0 to {}, and {} does not: where these are numbers of a longer "
      "list (a file's own), number the classes first, by one list for all of the data: number = {{label: i "
      "for i, label in enumerate(classes)}}",
      kinds, seen_max(), *facts.seen->gap));
}

}  // namespace trapline::diagnose
