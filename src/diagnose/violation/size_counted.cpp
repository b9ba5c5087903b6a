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
  std::string unit(ViolationWriter::unit(*facts.layer));
  unit = unit == "entries" ? "entry" : unit.substr(0, unit.size() - 1);
  // Where the numbers have gaps the last is none that was added: they are those of a longer list.
  const bool gaps =
      facts.seen && facts.seen->gap && facts.seen->kinds.value_or(facts.seen->here.value_or(0)) <= hi();
  constexpr std::int64_t kFew = 20;
  const bool places =
      facts.tensor.shape.size() >= 3 && kFew * facts.scan.bad <= facts.scan.total;  // of a map
  const bool next_alone = only(hi()) && seen_max() == hi() && !gaps && !(places && is_class());
  if (next_alone && size.text.find("max(") != std::string::npos)
    fix(fmt::format("{} is the highest number, and no count: from 0 on there is one more, {}", where,
                    next(hi())));
  else if (next_alone)
    fix(fmt::format(
        "{} says how many there are, and {} is the next number: see what has it: where one number is kept "
        "for "
        "what is not counted ({}), {} needs one {} more",
        where, hi(), is_class() ? "background, no class" : "none, padding, an unknown one", layer(), unit));
  else
    fix(fmt::format(
        "{} says how many there are: see why {} {} beyond it{}", where, users(),
        facts.variable ? "goes" : "go",
        computes() ? ""
        : gaps && seen_count() >= 2 * hi()
            ? fmt::format(": they have no more than {} different ones, with gaps: number them by the list "
                          "that is counted",
                          hi())
            : std::string(" (by another list, or data that were not counted)")));
  return true;
}

bool ViolationWriter::is_cut_short() const { return above() && seen_max() < facts.cut_from; }

std::string ViolationWriter::cut_short_text() const {
  return fmt::format(
      "what is indexed is a part of a tensor with {} places there, room for all of these: see whether it is "
      "cut too short, or the numbers are counted otherwise than the part",
      facts.cut_from);
}

bool ViolationWriter::speaks_for_size() const {
  if (!facts.source.empty()) return need().exact;
  if (hi() == 1 && is_class()) return true;  // one output for two classes
  if (hi() == 2 && is_class())
    return false;  // two are meant, as a rule, and the third number is none of them
  constexpr std::int64_t kTimes = 2;
  const auto& seen = facts.seen;
  return all_seen() && seen->kinds && seen_min() == 0 && 10 * *seen->kinds >= 9 * needed() &&
         needed() <= kTimes * hi();
}

void ViolationWriter::ask_size(const Need& need) {
  const std::string who = !layer().empty()    ? fmt::format("{} has {} {}", layer(), hi(), unit(*facts.layer))
                          : op() == "one_hot" ? fmt::format("num_classes is {}", hi())
                          : is_class()        ? fmt::format("there are {} classes", hi())
                                              : fmt::format("there are {} rows", hi());
  const bool known = !facts.made.empty() && !facts.made.back().text.ends_with("(...)");
  const std::string by = known ? fmt::format(", by `{}` ({})", facts.made.back().text,
                                             file_and_line(facts.made.back().file, facts.made.back().line))
                         : !facts.library.setting.empty()
                             ? fmt::format(", by {} of {}", facts.library.setting, facts.library.maker)
                             : std::string();
  if (finding().layer) finding().layer->needed.reset();
  // What fills a row of labels up was counted with them.
  const bool filled = op().starts_with("multilabel_margin_loss");
  const std::string of =
      filled ? "the " + nouns()
             : fmt::format("{}{} {}", of_the_last(), seen_count(), seen_count() == 1 ? noun() : nouns());
  const std::string where =
      facts.seen && facts.seen->dataset ? fmt::format("of {} data set", which_set()) : "seen";
  fix(fmt::format("see which of the two is meant: {}{}, and {} is the highest of {} {}", who, by,
                  need.count - 1, of, where));
}

void ViolationWriter::fix_if_meant(Situation situation, const Need& need, const std::string& text) {
  if (!knob(situation, need).empty() || speaks_for_size()) return fix(if_meant() + text);
  ask_size(need);
}

// All numbers from 40 to 71 and none below: an offset, and no list with gaps.
bool ViolationWriter::is_moved() const {
  const auto& seen = facts.seen;
  if (!above() || !seen || seen_min().value_or(0) < 2) return false;
  const std::int64_t kinds = (seen->dataset ? seen->kinds : seen->here).value_or(0);
  constexpr std::int64_t kSome = 4;
  if (kinds < kSome || kinds > hi() || 2 * *seen_min() < hi()) return false;  // first ones may not occur
  if (2 * facts.scan.bad < facts.scan.total) return false;  // what is moved is so as a whole
  return kinds == seen_max() - *seen_min() + 1 && seen_count() >= 2 * kinds;
}

void ViolationWriter::write_moved() {
  fix(fmt::format(
      "all numbers from {} to {} occur, and none below: see whether an offset is added to them where they "
      "are made, or one is not taken off",
      *seen_min(), seen_max()));
}

bool ViolationWriter::is_sparse() const {
  const auto& seen = facts.seen;
  if (!is_class() || !above() || !seen || !facts.source.empty()) return false;
  const std::optional<std::int64_t> kinds = seen->dataset ? seen->kinds : seen->here;
  if (!kinds) return false;
  constexpr std::int64_t kEach = 8, kFew = 8;
  const std::int64_t range = seen_max() + 1;
  if (is_moved()) return false;
  const bool as_many = *kinds == hi() && hi() <= kFew;  // of many one may be missing by chance
  return seen->gap && seen_count() >= kEach * range && (4 * *kinds < 3 * range || as_many);
}

void ViolationWriter::write_sparse() {
  const std::int64_t kinds = (facts.seen->dataset ? facts.seen->kinds : facts.seen->here).value_or(0);
  fix(fmt::format(
      "only {} different numbers occur of 0 to {}, and {} does not: see what each of them stands for", kinds,
      seen_max(), *facts.seen->gap));
}

}  // namespace trapline::diagnose
