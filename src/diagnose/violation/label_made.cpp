// Labels of which more is known than their number: what the data set names, what a mask or a batch was made
// with.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/frame.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

// Every label is a class of the data set: the records are right, and the model or the numbers are not.
void write_all_named(ViolationWriter& w) {
  w.finding().cause = Cause::kNumClassesMismatch;
  w.finding().also = {Cause::kLabelOutOfRange};
  const auto classes = static_cast<std::int64_t>(w.facts.named_classes);
  if (classes <= w.hi()) {
    w.fix(
        fmt::format("the data set names {} classes, with numbers up to {}: number them from 0: "
                    "number = {{id: i for i, id in enumerate(sorted(ids))}}; label = number[id]",
                    classes, w.facts.highest_class));
    return;
  }
  const Need need{std::max(w.facts.highest_class, w.integer()) + 1, true, {}};
  const std::string known = w.enlarge(Situation::kClasses, need);
  w.fix(fmt::format(
      "the data set itself names {} classes, and {} is one of them: {}", classes, w.value(),
      known.empty()
          ? fmt::format("give the layer that makes the input {} outputs instead of {}", need.count, w.hi())
          : known));
}

// The program itself gives the number of classes to what is none of them.
void write_filled(ViolationWriter& w) {
  const MadeAt& filled = *w.facts.filled;
  const bool label = w.noun() == "label";
  if (label) {
    w.finding().cause = Cause::kNumClassesMismatch;
    w.finding().also = {Cause::kLabelOutOfRange};
  }
  w.finding().summary += fmt::format("; `{}` ({}) gives the number of {} itself", filled.text,
                                     file_and_line(filled.file, filled.line), label ? "classes" : "rows");
  const MadeAt* size = w.facts.made.empty() ? nullptr : &w.facts.made.front();
  const bool plain = size != nullptr && size->text.find_first_of("=(") == std::string::npos;
  const std::string made = plain ? fmt::format(", `{0} + 1` in place of `{0}` ({1})", size->text,
                                               file_and_line(size->file, size->line))
                                 : std::string();
  w.fix(fmt::format(
      "if it stands for what is none of the {}: give {} one {} more than that number where it is "
      "made{}; the number itself stays what it is",
      label ? "classes (background)" : "others (an unknown word, padding)",
      w.layer().empty() ? "the layer that makes the input" : w.layer(), label ? "output" : "row", made));
  w.fix(fmt::format("if not, look at that line: {}", w.outside()));
}

// Neither counted from 1 nor a class to be made: the data set says itself which there are.
void write_unnamed(ViolationWriter& w) {
  w.fix(fmt::format(
      "the data set itself names {} classes, and this is none of them: correct the record, or leave it out",
      w.facts.named_classes));
  w.fix("if it is a class, add its name to the list of classes of the data set first");
}

// Numbers below and above the classes, of a mask as a rule: no list of classes is too short for that.
void write_resized(ViolationWriter& w) {
  const auto& [min, max] = std::pair(w.facts.scan.min, w.facts.scan.max);
  w.finding().summary +=
      fmt::format("; {} of {} lie on both sides of it{}", w.facts.scan.bad, w.facts.scan.total,
                  min && max ? fmt::format(", from {} to {}", to_text(*min), to_text(*max)) : "");
  if (w.facts.tensor.shape.size() < 3) {
    w.fix(fmt::format(
        "numbers on both sides of the classes come of arithmetic (data beyond the range that is cut "
        "into classes, an offset): {}",
        w.look_at_computation("the labels")));
    return w.fix_sample();
  }
  w.fix(fmt::format(
      "numbers on both sides of the classes come of a mask that was resized, rotated or warped by "
      "interpolation (bilinear, bicubic): mode=\"nearest\" keeps classes; or of arithmetic: {}",
      w.look_at_computation("the labels")));
}

// What fills short rows is no class.
void write_padding(ViolationWriter& w) {
  w.finding().summary += fmt::format("; {} is what short rows are filled with", w.value());
  if (w.has_ignore_index()) {
    const std::int64_t ignored = w.facts.scan.also.value_or(-100);
    w.fix(
        fmt::format("fill them with {0} where the collate function does it, which the loss leaves out, or "
                    "give the loss what they are filled with: ignore_index={1}",
                    ignored, w.value()));
    return;
  }
  w.fix(
      fmt::format("leave what is filled in out before the call, here and in all that goes with it: "
                  "{0} = {0}[{0} != {1}]",
                  w.in_code(w.argument()), w.value()));
}

}  // namespace trapline::diagnose
