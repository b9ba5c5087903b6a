// Labels that mark what is not to count, and what else such a number may be: -1, 255, 65535.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "diagnose/frame.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

// A detector has no label that does not count.
void write_annotation(ViolationWriter& w, std::int64_t label) {
  const std::string& format = w.facts.annotations;
  w.finding().summary += fmt::format("; {} annotations have no label to ignore", format);
  w.fix(fmt::format("if {} marks what is not to be found, take the object out: what has no box is background",
                    label));
  if (format == "COCO")
    w.fix("if it is there and not to count, as in a crowd, give it its category and \"iscrowd\": 1");
  w.fix("else give it the number of its class");
}

// The unsigned number that a -1 becomes where it is stored.
struct Wrapped {
  std::int64_t value;
  std::string_view dtype;
};
constexpr Wrapped kWrapped[] = {{255, "uint8"}, {65535, "uint16"}, {4294967295, "uint32"}};

// What finds nothing gives -1.
std::string look_up(const ViolationWriter& w) {
  if (w.facts.tensor.shape.size() > 1)
    return fmt::format(
        "{}, before -1 is taken for a mark: a table of codes that lacks some gives it, too (also for codes "
        "that "
        "interpolation has made up), and those are wrong",
        w.look_at_making("the label"));
  return fmt::format(
      "if a look-up that found nothing gave it (str.find, dict.get(key, -1), a pandas category), look at "
      "where {} {} made: correct the name that it did not find, add it to the classes, or leave that record "
      "out",
      w.users(), w.facts.variable ? "is" : "are");
}

// What else it may be than a mark is said first. It is none, where the program gives the mark a name.
void look_first(ViolationWriter& w, std::int64_t label) {
  if (w.is_filling()) return w.fix(w.look_at_filling());
  if (label == -1 && !w.is_padding() && !w.is_own_mark()) w.fix(look_up(w));
}

// "if -1 marks what is not to count (...)"
std::string if_mark(const ViolationWriter& w, std::int64_t label) {
  if (w.is_own_mark()) return fmt::format("if {} marks what is not to count", w.written_at());
  if (w.is_filling()) return fmt::format("if {} stands there for padding, or for what has no label", label);
  return fmt::format(
      "if {} marks what is not to count{}", label,
      label == -1 ? " (on purpose, and is not what a look-up or a table gave that lacked something)" : "");
}

// Labels that do not count are there, and are left out: -1 is another thing.
void write_second_mark(ViolationWriter& w, std::int64_t ignored) {
  w.finding().summary += fmt::format("; what is not to count is marked with {} here", ignored);
  look_first(w, -1);
  w.fix(fmt::format("if -1 marks what is not to count, too, mark it with {0}: labels[labels == -1] = {0}",
                    ignored));
}

// Not one is 0, as far as is known.
bool no_zero(const ViolationWriter& w) {
  const auto& seen = w.facts.seen;
  if (seen && seen->dataset && seen->kinds) return *seen->kinds == 2 && seen->min == -1 && seen->max == 1;
  if (w.facts.holds_zero) return !*w.facts.holds_zero;
  const auto& classes = w.facts.classes;
  return classes && std::ranges::find(classes->missing, 0) != classes->missing.end();
}

// The settings of the loss have an ignore_index that is a class: nothing is to be marked with it.
void fix_ignored_class(ViolationWriter& w, std::int64_t label, std::int64_t ignored) {
  std::string setting = "the ignore_index of the loss (of the model's config, where that has one)";
  for (const auto& [name, held] : w.facts.library.settings)
    if (name.find("ignore_index") != std::string::npos && held.size() == 1 && held.front() == ignored)
      setting = name;
  w.fix(fmt::format("if {} marks what is not to count, set {} to {}: {} is a class, which is left out now",
                    label, setting, label, ignored));
}

}  // namespace

bool is_wrapped(const ViolationWriter& w, std::int64_t value) {
  return std::any_of(std::begin(kWrapped), std::end(kWrapped), [&](const Wrapped& row) {
    return row.value == value && row.dtype == w.facts.tensor.dtype;
  });
}

// -100 in uint8 and uint16, which labels have as a rule before they are made int64.
bool is_wrapped_ignore(const ViolationWriter& w) {
  const bool wraps = w.integer() == 156 || w.integer() == 65436;
  return wraps && w.has_ignore_index() && w.facts.scan.also.value_or(-100) == -100;
}

void write_wrapped_ignore(ViolationWriter& w) {
  w.finding().summary +=
      fmt::format("; {} is what -100 becomes in {}", w.value(), w.integer() == 156 ? "uint8" : "uint16");
  w.fix(
      "if it is that: make the labels int64 before -100 is put among them, so that the loss leaves it out; "
      "the "
      "number in its place is no mark");
  w.fix(fmt::format("if not, {}: {}", w.look_at_making("the label"), w.outside()));
  w.fix_sample();
}

// Two classes that are called -1 and 1, as in svmlight's files: in all of the data, or in one part of it.
// False where only a word of it is said.
bool write_signed_classes(ViolationWriter& w) {
  if (w.hi() != 2 || w.op() == "one_hot" || w.facts.tensor.shape.size() > 2) return false;
  const std::string name = w.in_code("labels");
  const std::string map = fmt::format("{0}[{0} == -1] = 0", name);
  const auto& seen = w.facts.seen;
  const auto& part = w.facts.part;
  if (part && part->min == -1 && part->max == 1 && !part->zero) {
    const std::string who = part->position
                                ? fmt::format("`datasets[{}]` of the ConcatDataset", *part->position)
                                : std::string("this data set");
    w.finding().summary += fmt::format("; {} calls the two classes -1 and 1, the others 0 and 1", who);
    w.fix(fmt::format("number them alike where {} is read: {}", who, map));
    return true;
  }
  if (seen && seen->dataset && seen->min == -1 && seen->max == 1 && seen->kinds == 2) {
    w.finding().summary += "; the two classes are called -1 and 1";
    w.fix(fmt::format("number them 0 and 1 where they are read: {}", map));
    return true;
  }
  if (no_zero(w))
    w.fix(
        fmt::format("none of these labels is 0: if -1 and 1 are the two classes, in all of the data or in a "
                    "file of them: "
                    "{} where that is read",
                    map));
  return false;
}

// "-1 looks like an ignore label": one value far from the classes marks what is not to count.
void write_label_mark(ViolationWriter& w, std::int64_t label) {
  if (!w.facts.annotations.empty()) return write_annotation(w, label);
  if (w.facts.less_one && label == 255) {
    w.finding().summary += "; 255 is what 0 - 1 is in uint8";
    w.fix(fmt::format(
        "look at `{}` ({}): if 0 is no class, leave it out of the loss (ignore_index=255); if it is "
        "one, take nothing off",
        w.facts.less_one->text, file_and_line(w.facts.less_one->file, w.facts.less_one->line)));
    return;
  }
  if (w.facts.contract->predicate == Predicate::kEndedIndex) {
    w.finding().summary += "; only -1 ends the labels of a row";
    w.fix(fmt::format("fill each row with -1 behind its last label: {0}[{0} == {1}] = -1", w.argument(),
                      label));
    return;
  }
  if (!w.has_ignore_index()) {
    w.finding().summary +=
        w.op() == "one_hot"
            ? fmt::format("; {} often marks what is not known", label)
            : fmt::format("; {} looks like an ignore label, which {} does not have", label, w.op());
    if (const std::string knob = w.ignore_knob(); !knob.empty()) {
      w.fix(knob);
      return;
    }
    const std::string name = w.in_code(w.argument());
    look_first(w, label);
    if (w.op() == "one_hot") {
      w.fix(
          fmt::format("if {1} marks what is unlabelled, give it a row of zeros: known = {0} != {1}; "
                      "F.one_hot({0}.masked_fill(~known, 0), {2}) * known.unsqueeze(-1)",
                      name, label, w.hi()));
      w.fix(fmt::format("or leave them out, here and in all that goes with them: {0}[{0} != {1}]", name,
                        label));
      return;
    }
    w.fix(fmt::format(
        "if {1} marks what is unlabelled, leave it out before the call, here and in all that goes "
        "with it: {0} = {0}[{0} != {1}]",
        name, label));
    return;
  }
  const std::int64_t ignored = w.facts.scan.also.value_or(-100);
  // Both marks are in the data: to ignore the one is to fail at the other.
  const bool both = w.facts.scan.min == Scalar(ignored) || w.facts.scan.max == Scalar(ignored);
  if (label == -1 && both && w.facts.library.caller.empty()) return write_second_mark(w, ignored);
  w.finding().summary +=
      fmt::format("; {} looks like an ignore label, but ignore_index is {}", label, ignored);
  look_first(w, label);
  const std::string knob = w.ignore_knob();
  if (!knob.empty()) w.fix(knob);
  if (w.facts.library.caller.empty() && !both) {
    const char* function = w.facts.as_nll ? "nll_loss" : "cross_entropy";
    const char* module = w.facts.as_nll ? "NLLLoss" : "CrossEntropyLoss";
    w.fix(fmt::format("{3}: F.{1}(..., ignore_index={0}) or nn.{2}(ignore_index={0})", label, function,
                      module, if_mark(w, label)));
  }
  if (ignored >= 0 && ignored < w.hi()) {
    if (w.finding().fix.empty()) fix_ignored_class(w, label, ignored);
    return;
  }
  w.fix(w.finding().fix.empty()
            ? fmt::format("if {0} marks what is not to count, mark it with {1}: labels[labels == {0}] = {1}",
                          label, ignored)
            : fmt::format("or{2} mark such elements with {1}: labels[labels == {0}] = {1}", label, ignored,
                          label == -1 ? ", then," : ""));
  if (is_wrapped(w, label)) {
    w.fix(fmt::format(
        "{} in {} can also be a -1 that was stored there: read the labels as int64 from the start", label,
        w.facts.tensor.dtype));
  }
}

// Of the classes only 0 occurs: 255 is the white of a picture of two colours, not a mark.
bool two_colours(const ViolationWriter& w) {
  if (w.facts.two_colours) return true;
  return w.facts.classes && w.facts.classes->seen == 2 && w.hi() > 1 && !w.facts.classes->missing.empty() &&
         w.facts.classes->missing.front() == 1 && w.facts.scan.min == Scalar(std::int64_t{0});
}

void write_two_colours(ViolationWriter& w) {
  w.finding().summary +=
      fmt::format("; {}0 and 255 alone occur: 255 is the white of a picture of two colours, not class 1",
                  w.facts.two_colours ? "in that record " : "");
  w.fix(w.facts.two_colours ? "turn white into class 1 where that mask is loaded (mask // 255, or mask > 0), "
                              "and see which others of "
                              "the data are so"
                            : "turn white into class 1 where the masks are loaded: labels = labels // 255");
  if (w.facts.two_colours) w.fix_sample();
  w.fix(
      "only if 255 marks what is not to count, ignore_index=255; nothing but class 0 is then left to learn");
}

}  // namespace trapline::diagnose
