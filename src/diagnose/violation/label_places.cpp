// Labels that are places of a sequence or rows of a batch: heads, spans, positives.
#include <fmt/format.h>

#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

// No layer makes so many outputs, and the target, or each row of the ids that go with it, has just as many
// places: its numbers are places in it (a head, a span).
bool are_places(const ViolationWriter& w) {
  const bool as_long = w.facts.as_long || !w.facts.ids_as_long.empty();
  const bool counted = w.hi() == 1 || w.need().exact;
  return as_long && !counted && w.layer().empty() && w.op() == "cross_entropy";
}

void write_places(ViolationWriter& w) {
  const std::string longer = w.facts.as_long ? w.users() : fmt::format("a row of `{}`", w.facts.ids_as_long);
  w.finding().also = {Cause::kNumClassesMismatch};
  w.fix(fmt::format(
      "{} is as long as there are classes ({}): where {} are places in it, those lie behind its end: count "
      "them in what it holds (tokens, not characters), after it is cut, and leave out what points behind "
      "the cut",
      longer, w.hi(), w.facts.as_long ? "its numbers" : w.users()));
  w.fix(fmt::format("if they are no places, look at where {} is made: {}", w.users(), w.outside()));
  w.fix_sample();
}

// Each row has a place for each row, or for each other one: its places are rows of this batch.
void fix_places_of_batch(ViolationWriter& w) {
  const auto rows = w.facts.size("self", 0);
  if (rows == w.hi())
    w.fix(fmt::format(
        "where they are places, there are {} of them here: compute them of the sizes of this very "
        "batch, the last one of an epoch is often smaller",
        w.hi()));
  if (rows == next(w.hi()))
    w.fix(fmt::format(
        "there is one place less than there are rows ({}): where each row's own was taken out (the diagonal "
        "of a square), those behind it moved down by one: a label above its row's number is one less",
        *rows));
}

}  // namespace trapline::diagnose
