// What the one place of the program that writes the bad number says of it: `IGNORE = -1`, `np.full(256, -1)`.
#include <fmt/format.h>

#include "diagnose/frame.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

bool ViolationWriter::answers_nothing() const {
  return facts.written && facts.written->of == "nothing" && only(integer());
}

bool ViolationWriter::is_own_mark() const {
  return facts.written && facts.written->of == "name" && only(integer());
}

bool ViolationWriter::is_filling() const {
  return facts.written && facts.written->of == "fill" && only(integer());
}

std::string ViolationWriter::written_at() const {
  const MadeAt& at = facts.written->at;
  return fmt::format("`{}` ({})", at.text, file_and_line(at.file, at.line));
}

void ViolationWriter::write_not_found() {
  finding_.summary +=
      fmt::format("; `{}` gives {} for what it does not find", facts.written->at.text, value());
  const bool several = facts.tensor.shape.size() > 1;  // one of a record, which has others
  const char* leave = !several             ? "or leave such records out"
                      : has_ignore_index() ? "or let the loss leave such elements out (ignore_index)"
                                           : "or leave such elements out";
  fix(fmt::format("look at {}, and at what it was asked for: correct that, add it to the list, {}",
                  written_at(), leave));
  fix_sample();
}

bool ViolationWriter::write_own_number() {
  constexpr std::int64_t kUnsigned = 255;  // what a mark of -1 becomes
  if (!above() || integer() == kUnsigned || !facts.written || !only(integer()) || facts.counted) return false;
  if (answers_nothing()) {
    write_not_found();
    return true;
  }
  const bool labels = noun() == "label";
  finding_.summary += fmt::format("; {} writes it", written_at());
  fix(
      fmt::format("look at {}, which writes {}: what that stands for is left out "
                  "before, or it gets the next number, {}, and {} of its own",
                  written_at(), value(), hi(), labels ? "an output" : "a row"));
  fix_sample();
  return true;
}

std::string ViolationWriter::look_at_filling() const {
  return fmt::format(
      "look at {}, which writes {}: where something else should stand (a code that a table lacks, no match), "
      "mend "
      "that first: to leave it out would hide it",
      written_at(), value());
}

}  // namespace trapline::diagnose
