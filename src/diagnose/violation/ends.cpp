// Where numbers end, by what the program's text says of them. What a calendar counts from 1, the months or
// the days of a week: the first of the places is never used, and a place more would leave all of them one too
// late. A range that holds its end. A type that is too narrow, and `//`, which rounds down: what is below 0
// marks nothing there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

bool ViolationWriter::write_calendar() {
  if (!facts.calendar || facts.calendar->last < 2) return false;
  const auto& [at, last, by] = *facts.calendar;
  const std::string place = file_and_line(at.file, at.line);
  finding_.summary += fmt::format("; `{}` counts from 1 to {}", at.text, last);
  if (by > 1) {
    fix(fmt::format(
        "if they are `{0} // {1}` ({2}), that is {3} for the last: take 1 off before, ({0} - 1) // "
        "{1}, or all groups begin one too late",
        at.text, by, place, last / by));
  } else {
    fix(fmt::format("if they are `{}` ({}): take 1 off there, so that all of them move down by one", at.text,
                    place));
  }
  if (by == 1) fix(fmt::format("if not: {}: {}", look_at_computation("the " + nouns()), outside()));
  if (finding_.layer) finding_.layer->needed.reset();
  return true;
}

bool ViolationWriter::rounds_down() const {
  static constexpr std::array kWords{"//", "floor", "rounding_mode"};
  return facts.assigned && std::ranges::any_of(kWords, [&](std::string_view word) {
           return facts.assigned->at.text.find(word) != std::string::npos;
         });
}

void ViolationWriter::write_floored() {
  if (!facts.floored || !only(-1) || rounds_down()) return;
  const auto& at = *facts.floored;
  fix(fmt::format(
      "if it comes of `{}` ({}): `//` rounds down, and gives -1 for what lies a little below 0: see "
      "what such a number means there",
      at.text, file_and_line(at.file, at.line)));
}

bool ViolationWriter::write_narrow() {
  if (facts.narrow.empty() || above()) return false;
  const int bits = facts.narrow == "int8" ? 8 : 16;
  const std::int64_t end = std::int64_t{1} << (bits - 1);
  fix(fmt::format(
      "if they went through {0} (the program speaks of it): that ends at {1}, and what is beyond has "
      "become {2} less: take a wider type there; {2} added here mends the negative ones alone",
      facts.narrow, end - 1, 2 * end));
  fix(fmt::format("if not, {}: {}", look_at_computation("the " + nouns()), outside()));
  fix_sample();
  return true;
}

bool ViolationWriter::write_end() {
  if (!facts.end || facts.end->lines.empty() || !only(hi())) return false;
  const auto& [text, file, lines] = *facts.end;
  const std::string also = lines.size() > 1
                               ? fmt::format(" and {}", fmt::join(lines.begin() + 1, lines.end(), ", "))
                               : std::string();
  finding_.summary += fmt::format("; `{}` may give {} itself", text, hi());
  fix(fmt::format("if they are drawn by `{}` ({}{}): it gives its end as well, so take 1 off the end there",
                  text, file_and_line(file, lines.front()), also));
  fix(fmt::format("if not: {}: {}", look_at_computation("the " + nouns()), outside()));
  if (finding_.layer) finding_.layer->needed.reset();
  return true;
}

}  // namespace trapline::diagnose
