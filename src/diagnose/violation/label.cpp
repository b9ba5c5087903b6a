// Class labels: cross_entropy, nll_loss, multi_margin_loss, one_hot, ctc_loss.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "diagnose/violation/writer.hpp"

namespace trapline {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

bool has_ignore_index(const Case& c) { return c.facts.contract->also_arg == "ignore_index"; }

std::string owner(const Case& c) {
  if (c.op() == "one_hot") return fmt::format("num_classes is {}", c.hi());
  if (c.op() == "check_labels" && c.layer().empty()) return fmt::format("{} classes are expected", c.hi());
  if (c.op() == "ctc_loss") return fmt::format("log_probs has {} classes", c.hi());
  const std::string who = c.facts.layer && c.facts.layer_certain ? c.layer() : std::string();
  if (who.empty()) return fmt::format("the input has {} class{}", c.hi(), c.hi() == 1 ? "" : "es");
  return fmt::format("{} has {} output{}", who, c.hi(), c.hi() == 1 ? "" : "s");
}

void write_summary(const Case& c) {
  if (c.hi() == kUnbounded) {
    c.finding.summary = fmt::format("{}, but class labels start at 0", c.opening());
    return;
  }
  c.finding.summary = fmt::format("{}, but {}: valid labels are {}", c.opening(), owner(c), c.range());
}

// "-1 looks like an ignore label": one value far from the classes marks what is not to count.
void write_ignore_label(const Case& c, std::int64_t label) {
  if (c.facts.contract->predicate == Predicate::kEndedIndex) {
    c.finding.summary += "; only -1 ends the labels of a row";
    c.fix(fmt::format("fill each row with -1 behind its last label: {0}[{0} == {1}] = -1", c.argument(),
                      label));
    return;
  }
  if (!has_ignore_index(c)) {
    c.finding.summary +=
        c.op() == "one_hot"
            ? fmt::format("; {} often marks what is not known", label)
            : fmt::format("; {} looks like an ignore label, which {} does not have", label, c.op());
    if (const std::string knob = c.knob(Situation::kIgnore); !knob.empty()) {
      c.fix(knob);
      return;
    }
    const std::string name = c.in_code(c.argument());
    if (c.op() == "one_hot") {
      c.fix(
          fmt::format("if {1} marks what is unlabelled, give it a row of zeros: known = {0} != {1}; "
                      "F.one_hot({0}.masked_fill(~known, 0), {2}) * known.unsqueeze(-1)",
                      name, label, c.hi()));
      c.fix(fmt::format("or leave them out, here and in all that goes with them: {0}[{0} != {1}]", name,
                        label));
      if (label == -1) {
        c.fix(fmt::format(
            "if a look-up that found nothing gave it (str.find, a pandas category), look at where {} "
            "{} made: what is missing there needs a class of its own",
            c.users(), c.facts.variable ? "is" : "are"));
      }
      return;
    }
    c.fix(fmt::format(
        "if {1} marks what is unlabelled, leave it out before the call, here and in all that goes "
        "with it: {0} = {0}[{0} != {1}]",
        name, label));
    return;
  }
  const std::int64_t ignored = c.facts.scan.also.value_or(-100);
  c.finding.summary += fmt::format("; {} looks like an ignore label, but ignore_index is {}", label, ignored);
  const std::string knob = c.knob(Situation::kIgnore);
  if (!knob.empty()) c.fix(knob);
  // Both marks are in the data: to ignore the one is to fail at the other.
  const bool both = c.facts.scan.min == Scalar(ignored) || c.facts.scan.max == Scalar(ignored);
  if (c.facts.library.caller.empty() && !both) {
    c.fix(
        fmt::format("if {0} marks what is not to count: F.cross_entropy(..., ignore_index={0}) or "
                    "nn.CrossEntropyLoss(ignore_index={0})",
                    label));
  }
  c.fix(c.finding.fix.empty()
            ? fmt::format("if {0} marks what is not to count, mark it with {1}: labels[labels == {0}] = {1}",
                          label, ignored)
            : fmt::format("or mark such elements with {1}: labels[labels == {0}] = {1}", label, ignored));
  if (label == 255 && c.facts.tensor.dtype == "uint8") {
    c.fix("255 in uint8 can also be a -1 that was stored there: read the labels as int64 from the start");
  }
}

// Labels 1..N. Believable when the whole data set was seen, or so many labels that a class 0 would have
// shown.
bool one_based(const Case& c) {
  if (c.op() == "ctc_loss") return false;  // 0 is the blank
  if (c.counted_from_one()) return true;
  return c.seen_count() / 3 >= c.hi() && c.hi() > 1 && c.seen_min() == 1 && c.seen_max() == c.hi() &&
         c.only(c.hi()) && !(c.facts.counted && c.facts.counted->count > c.hi());
}

// 0 occurred before; this call, with labels enough to show one, runs from 1 to N.
bool one_based_part(const Case& c) {
  return c.op() != "ctc_loss" && c.hi() > 1 && c.facts.seen && c.facts.seen->min == 0 &&
         c.facts.seen->max == c.hi() && c.facts.scan.min == Scalar(std::int64_t{1}) &&
         c.facts.scan.max == Scalar(c.hi()) && c.only(c.hi()) && c.facts.scan.total / 3 >= c.hi() &&
         !(c.facts.counted && c.facts.counted->count > c.hi());
}

void write_one_based_part(const Case& c) {
  c.finding.also = {Cause::kNumClassesMismatch};
  c.finding.summary += fmt::format(
      "; here labels run from 1 to {0}, elsewhere 0 occurs: a part of the data may "
      "be counted from 1",
      c.hi());
  c.fix(
      "compare where this part comes from with the rest: if it is counted from 1, labels - 1 for this part");
}

void write_one_based(const Case& c) {
  c.finding.also = {Cause::kNumClassesMismatch};
  c.finding.summary +=
      fmt::format("; labels look 1-based: they run from 1 to {} {}", c.seen_max(), c.seen_where());
  const bool several = c.facts.seen && c.facts.seen->several;
  const DataSet* set = c.facts.sample && c.facts.sample->dataset ? &*c.facts.sample->dataset : nullptr;
  if (several) {
    const std::string name = set && !set->name.empty() ? fmt::format("`{}`", set->name) : "this data set";
    c.fix(fmt::format("if the program's other data sets begin at 0: label - 1, in {} alone", name));
    c.fix("if they begin at 1, too: label - 1 in all of them");
  } else {
    c.fix("labels = labels - 1, best once in the data set");
    c.fix("at prediction time add it again: label = logits.argmax(1) + 1");
  }
  const std::string resize = c.enlarge(Situation::kClasses, {next(c.hi()), true, ""});
  c.finding.layer.has_value() ? c.finding.layer->needed.reset() : void();
  if (!resize.empty()) c.fix(fmt::format("only if there is a class 0 as well: {}", resize));
}

// Labels such as 0, 1, 5, 6 for four classes: as many different ones as there may be, but with gaps.
bool has_gaps(const Case& c) {
  const auto kinds = static_cast<std::int64_t>(c.distinct());
  return c.facts.classes && c.facts.classes->seen <= c.hi() && c.seen_count() / 3 >= c.hi() &&
         c.facts.scan.bad / kinds >= c.seen_count() / c.facts.classes->seen / 4 &&
         c.facts.classes->seen > 1 && !c.facts.classes->missing.empty() && c.seen_min() >= 0;
}

void write_gaps(const Case& c) {
  const Classes& classes = *c.facts.classes;
  c.finding.also = {Cause::kNumClassesMismatch};
  c.finding.summary += fmt::format("; the classes have a gap: only {} different labels occur, and {} never",
                                   classes.seen, classes.missing.front());
  c.fix(fmt::format(
      "number the classes without a gap: kinds = sorted(set(labels)); label = kinds.index(label), 0 to {}",
      classes.seen - 1));
  const Need need = c.need();
  const std::string resize = c.enlarge(Situation::kClasses, need);
  if (c.finding.layer) c.finding.layer->needed.reset();
  c.fix(resize.empty() ? fmt::format("or give the layer that makes the input {} outputs", need.text())
                       : fmt::format("or {}", resize));
}

void fix_range_check(const Case& c) {
  const auto ignored = c.facts.scan.also;
  const bool left_out = ignored && (*ignored < 0 || *ignored >= c.hi());
  const std::string kept = left_out ? fmt::format("labels[labels != {}]", *ignored) : std::string("labels");
  c.fix(
      fmt::format("check the data before training: known = {}; assert 0 <= known.min() and known.max() < {}",
                  kept, c.hi()));
}

// "give the last layer at least 4 outputs instead of 3 (...)", where no layer is known.
std::string more_outputs(const Case& c) {
  const Need need = c.need();
  const std::string how = need.exact ? std::string() : c.how_to_count();
  if (c.op() == "one_hot" && !c.facts.library.caller.empty()) {
    return fmt::format(
        "{} calls one_hot with num_classes={}: give it {} classes where you tell it how many{}",
        c.facts.library.caller, c.hi(), need.text(), c.basis(need));
  }
  if (c.op() != "one_hot") {
    return fmt::format("give the layer that makes the input {} outputs instead of {}{}{}", need.text(),
                       c.hi(), c.basis(need), how);
  }
  return need.exact ? fmt::format("F.one_hot(..., num_classes={}){}", need.count, c.basis(need))
                    : fmt::format("F.one_hot(..., num_classes=N), N {}{}{}", need.text(), c.basis(need), how);
}

void write_too_few_outputs(const Case& c) {
  c.finding.cause = Cause::kNumClassesMismatch;
  c.finding.also = {Cause::kLabelOutOfRange};
  if (c.fix_size(Situation::kClasses, more_outputs(c))) {
    const bool other = c.maybe_from_one();
    if (other) c.fix(c.from_one(c.in_code("labels")));
    // No layer has so many outputs: the classes may be the places of a sequence, or the choices of a
    // question.
    constexpr std::int64_t kLongest = 1024;
    if (c.layer().empty() && c.op() == "cross_entropy" && c.facts.source.empty() && c.hi() <= kLongest) {
      c.fix(fmt::format(
          "if they are positions, they lie behind the sequence of {}: compute them after it is cut", c.hi()));
    }
    c.fix(fmt::format("if {}, correct the data: {}", other ? "neither" : "not", c.outside()));
  }
  if (c.hi() == 1) {
    c.fix(
        "or, for two classes and one output: F.binary_cross_entropy_with_logits(logits.squeeze(1), "
        "labels.float())");
    return;
  }
  if (c.op() == "ctc_loss")
    c.fix("count the blank: log_probs needs one class more than the alphabet has letters");
}

// A mask whose 255 and whose classes were mixed: many different values in between.
bool interpolated(const Case& c) {
  constexpr std::size_t kKinds = 3;
  constexpr std::int64_t kVoid = 255;
  const auto& max = c.facts.scan.max;
  return c.facts.tensor.shape.size() >= 3 && c.distinct() >= kKinds && c.hi() < kVoid &&
         max == Scalar(kVoid) && c.integer() < kVoid;
}

void write_broken_label(const Case& c) {
  c.finding.also = {Cause::kNumClassesMismatch};
  c.fix_sample();
  if (interpolated(c)) {
    c.finding.summary += "; values between the classes and 255 are what interpolation makes of a mask";
    c.fix("resize masks without interpolation: mode=\"nearest\", Image.NEAREST, cv2.INTER_NEAREST");
    return;
  }
  c.fix(fmt::format("{}correct or drop the record that has it: {}",
                    c.facts.counted ? "" : fmt::format("if {} is no class, ", c.value()), c.outside()));
  if (c.facts.counted) {
    c.finding.summary +=
        fmt::format("; {} is {}: there is no such class", c.facts.counted->of, c.facts.counted->count);
  } else if (const std::string larger = c.enlarge(Situation::kClasses, c.need()); !larger.empty()) {
    c.fix(c.if_meant() + larger);
  }
  fix_range_check(c);
}

// Every label that is known is the mark: a test set whose labels are held back.
bool unlabelled(const Case& c) { return c.all_bad() && c.only(c.integer()) && c.seen_max() == c.integer(); }

void write_unlabelled(const Case& c) {
  c.finding.summary += fmt::format("; every label {} is {}: this data set seems to have none",
                                   c.facts.seen ? c.seen_where() : "of this call", c.integer());
  c.fix("compute the loss and the scores on data that has labels: test sets often hold theirs back");
  c.fix("to predict only, call the model without labels: an ignored label everywhere makes the loss NaN");
}

void write_negative(const Case& c) {
  if (c.integer() == -100 && has_ignore_index(c)) {
    c.finding.summary +=
        fmt::format("; -100 is PyTorch's default ignore label, but this call has ignore_index={}",
                    c.facts.scan.also.value_or(-100));
    c.fix("drop ignore_index from the call, or pass ignore_index=-100");
    return;
  }
  // Only these mark what is not to count; -3 marks nothing.
  const bool marks = c.integer() == -1 || c.integer() == -100;
  if (marks && c.op() != "one_hot" && unlabelled(c)) return write_unlabelled(c);
  if (c.distinct() == 1 && c.only(c.integer()) && !c.both_sides() &&
      (marks || c.facts.contract->predicate == Predicate::kEndedIndex)) {
    write_ignore_label(c, c.integer());
    c.fix_sample();
    return;
  }
  c.fix_sample();
  c.fix(fmt::format("a label must not be negative: {}: look at where {} {} computed", c.outside(), c.users(),
                    c.facts.variable ? "is" : "are"));
}

}  // namespace

void diagnose_label(const Case& c) {
  write_summary(c);
  constexpr std::int64_t kIgnored = 255;  // VOID in PASCAL VOC, Cityscapes and their descendants
  if (!c.above()) {
    write_negative(c);
  } else if (c.only(kIgnored) && c.hi() < kIgnored && !(c.facts.seen && c.facts.seen->max > kIgnored)) {
    write_ignore_label(c, kIgnored);
  } else if (c.write_part()) {
    c.finding.also = {Cause::kNumClassesMismatch};
    c.fix_sample();
    if (const std::string larger = c.enlarge(Situation::kClasses, c.need()); !larger.empty()) {
      c.fix(c.if_meant() + larger);
    }
    if (c.finding.layer) c.finding.layer->needed.reset();
  } else if (one_based(c)) {
    write_one_based(c);
  } else if (one_based_part(c)) {
    write_one_based_part(c);
    write_too_few_outputs(c);
    c.fix_sample();
  } else if (has_gaps(c)) {
    write_gaps(c);
  } else if (c.likely() && !interpolated(c)) {
    write_too_few_outputs(c);
    c.fix_sample();
  } else {
    write_broken_label(c);
  }
}

}  // namespace trapline
