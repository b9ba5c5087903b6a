// Numbers that no record has: they came in between the data and the call, so that neither a record nor a
// size is wrong.
#include <fmt/format.h>

#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

bool ViolationWriter::made_between() const {
  if (!above() || !need().of.empty()) return false;
  if (!facts.masked.empty() || is_rounded()) return true;
  return facts.sample &&
         (facts.sample->by == "collate" || facts.sample->by == "drawn" || facts.sample->by == "replaced");
}

void ViolationWriter::write_made_between() {
  if (is_rounded()) {
    finding_.summary += fmt::format("; `{}` is {}, which rounds whole numbers above {}", facts.variable->name,
                                    facts.rounded, facts.exact);
    fix(
        fmt::format("keep {} as integers (torch.long), apart from what is {}: others are rounded to a wrong, "
                    "valid one without a word",
                    nouns(), facts.rounded));
    return;
  }
  if (!facts.masked.empty()) {
    fix(fmt::format(
        "{}, all where `{}` is 0: that is padding: put a valid number there (0) where {} {} made; "
        "no larger size is wanted",
        outside(), facts.masked, own("the " + nouns()), facts.variable ? "is" : "are"));
    return;
  }
  const std::string& by = facts.sample->by;
  if (by == "replaced") {
    fix(
        fmt::format("the batch has another number at that place: look at what puts {} there before the call "
                    "(a mask, noise, a wrapper of the model and the number of tokens that it was given); a "
                    "number that is meant to mean something of its own (a mask) needs a place of its own",
                    value()));
  } else if (by == "collate") {
    fix(
        fmt::format("the sample itself has no {}: look at what the collate function puts there (numbers that "
                    "it draws, marks, an offset), and how many there are by its settings",
                    value()));
  } else if (!only(hi())) {
    fix(fmt::format(
        "the data set makes another number each time: look at what is drawn there, and where {} {} "
        "made: {}",
        own("the " + nouns()), facts.variable ? "is" : "are", outside()));
  } else {
    fix(fmt::format(
        "the data set draws the number anew each time: look at what draws it; random.randint(a, b) "
        "can give b itself, random.randrange(a, b), torch.randint and NumPy's cannot",
        value()));
  }
  if (facts.computed) fix(look_at_computation("the " + nouns()));
}

}  // namespace trapline::diagnose
