// The numbers have the name of another head or table beside the one that got them: two parts of the program
// are paired wrongly, and neither a larger layer nor another record would be right.
#include <fmt/format.h>

#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

bool ViolationWriter::write_namesake() {
  if (!facts.namesake || !facts.variable) return false;
  const NamesakeFact& other = *facts.namesake;
  finding_.summary += fmt::format("; these are `{}`, and it is `{}` that has {} places", facts.variable->name,
                                  other.name, other.places);
  fix(fmt::format(
      "`{}` went to {} and not to `{}`: look at how the two are paired; zip() pairs by order, not by name",
      facts.variable->name, layer().empty() ? "another layer" : layer(), other.name));
  if (finding_.layer) finding_.layer->needed.reset();
  return true;
}

bool ViolationWriter::write_other_head() {
  if (!facts.other_head || layer().empty()) return false;
  const NamesakeFact& other = *facts.other_head;
  const bool table = facts.layer->attribute == "num_embeddings";
  finding_.summary += fmt::format("; `{}` has {} {}, as many as these need", other.name, other.places,
                                  table ? "rows" : "outputs");
  fix(
      fmt::format("look at whether {} are paired in the same order: {} has {}, and as many as these need has "
                  "`{}`: a tuple, a list and zip() pair by order, not by name",
                  table ? "ids and tables" : "labels and outputs", layer(), hi(), other.name));
  fix(fmt::format("if they are: {}: {}", look_at_computation("the " + nouns()), outside()));
  if (finding_.layer) finding_.layer->needed.reset();
  return true;
}

}  // namespace trapline::diagnose
