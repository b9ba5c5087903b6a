// Labels that are places of a sequence or rows of a batch (heads, spans, positives), or numbers of another
// list.
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
  w.fix(fmt::format("if they are no places, {}: {}", w.look_at_making("the label"), w.outside()));
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

// Not one is valid: they are of another list.
bool all_beyond(const ViolationWriter& w) {
  constexpr std::int64_t kTelling = 4;
  return w.facts.scan.bad == w.facts.scan.total && w.facts.scan.total >= kTelling && !w.computes() &&
         w.facts.source.empty() && w.op() != "ctc_loss";
}

void fix_all_beyond(ViolationWriter& w) {
  w.fix(fmt::format("all {} are outside {}: {}: they may be numbers of another, longer list{}",
                    w.facts.scan.total, w.range(),
                    w.facts.assigned ? w.look_at_making("the label")
                                     : fmt::format("look at where {} are numbered", w.users()),
                    w.noun() == "label" ? " of classes" : ", or counted from another number"));
}

void fix_resized(ViolationWriter& w) {
  if (!w.facts.resizes || w.facts.greys || w.facts.tensor.shape.size() < 3 || !w.facts.source.empty()) return;
  constexpr std::int64_t kFew = 20;  // edges of regions
  if (w.is_sparse() || kFew * w.facts.scan.bad > w.facts.scan.total) return;
  w.fix_after_first(
      "if the masks are resized or warped: only by the nearest neighbour (mode=\"nearest\", Image.NEAREST); "
      "other ways make numbers between the classes, and bicubic ones beyond them");
}

}  // namespace trapline::diagnose
