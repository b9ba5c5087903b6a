// Class labels: cross_entropy, nll_loss, multi_margin_loss, one_hot, ctc_loss.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "diagnose/frame.hpp"
#include "diagnose/markers.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

std::string owner(const ViolationWriter& w) {
  if (w.op() == "one_hot") return fmt::format("num_classes is {}", w.hi());
  if (w.op() == "check_labels" && w.layer().empty()) return fmt::format("{} classes are expected", w.hi());
  if (w.op() == "ctc_loss") return fmt::format("log_probs has {} classes", w.hi());
  const std::string who = w.facts.layer && w.facts.layer_certain ? w.layer() : std::string();
  if (who.empty()) return fmt::format("the input has {} class{}", w.hi(), w.hi() == 1 ? "" : "es");
  return fmt::format("{} has {} output{}", who, w.hi(), w.hi() == 1 ? "" : "s");
}

void write_summary(ViolationWriter& w) {
  if (w.hi() == kUnbounded) {
    w.finding().summary = fmt::format("{}, but class labels start at 0", w.opening());
    return;
  }
  w.finding().summary =
      fmt::format("{}, but {}: valid {} are {}", w.opening(), owner(w), w.nouns(), w.range());
}

// Labels such as 0, 1, 5, 6 for four classes: as many different ones as there may be, but with gaps.
bool has_gaps(const ViolationWriter& w) {
  const auto kinds = static_cast<std::int64_t>(w.distinct());
  return w.facts.classes && w.facts.classes->seen <= w.hi() && w.seen_count() / 3 >= w.hi() &&
         w.facts.scan.bad / kinds >= w.seen_count() / w.facts.classes->seen / 4 &&
         w.facts.classes->seen > 1 && !w.facts.classes->missing.empty() && w.seen_min() >= 0;
}

void write_gaps(ViolationWriter& w) {
  const Classes& classes = *w.facts.classes;
  w.finding().also = {Cause::kNumClassesMismatch};
  w.finding().summary += fmt::format("; the classes have a gap: only {} different labels occur, and {} never",
                                     classes.seen, classes.missing.front());
  // What is not among these labels may be a class of the training's.
  w.fix(
      fmt::format("if {} is no class in any of the program's data, number the classes without a gap, by one "
                  "list for all of it: kinds = sorted(set(labels)); label = kinds.index(label), 0 to {}",
                  classes.missing.front(), classes.seen - 1));
  const Need need = w.need();
  const std::string resize = w.enlarge(Situation::kClasses, need);
  if (w.finding().layer) w.finding().layer->needed.reset();
  w.fix(resize.empty() ? fmt::format("or give the layer that makes the input {}", w.how_many(need, "outputs"))
                       : fmt::format("or {}", resize));
}

void fix_range_check(ViolationWriter& w) {
  if (w.noun() != "label") return;
  if (w.op().starts_with("multilabel_margin_loss")) {  // -1 ends a row
    w.fix(fmt::format("check the data before training: assert -1 <= labels.min() and labels.max() < {}",
                      w.hi()));
    return;
  }
  const auto ignored = w.facts.scan.also;
  const bool left_out = ignored && (*ignored < 0 || *ignored >= w.hi());
  const std::string kept = left_out ? fmt::format("labels[labels != {}]", *ignored) : std::string("labels");
  w.fix(
      fmt::format("check the data before training: known = {}; assert 0 <= known.min() and known.max() < {}",
                  kept, w.hi()));
}

// "give the last layer more outputs than 3: as many as there are classes (...)", where no layer is known.
std::string more_outputs(const ViolationWriter& w) {
  const Need need = w.need();
  if (w.op() == "one_hot" && !w.facts.library.caller.empty()) {
    const std::string by = w.facts.made.empty() ? "" : fmt::format(" (`{}`)", w.facts.made.front().text);
    return fmt::format("{} calls one_hot with num_classes={}{}: give it {}{}", w.facts.library.caller, w.hi(),
                       by, w.larger(need, w.noun() == "label" ? "classes" : "places"), w.basis(need));
  }
  if (w.op() != "one_hot") {
    return fmt::format("give the layer that makes the input {}{}", w.larger(need, "outputs"), w.basis(need));
  }
  const char* model = w.noun() == "label" ? "; what it is compared with needs as many outputs"
                                          : "; what takes it has to be as wide";
  const std::string made = w.where_made();
  return need.exact
             ? fmt::format("F.one_hot(..., num_classes={}){}{}{}", need.count, made, w.basis(need), model)
             : fmt::format("F.one_hot(..., num_classes=N){}, N {}{}{}", made, w.how_many(need), w.basis(need),
                           model);
}

// That the model has fewer outputs than there are classes is known where these were counted: a label beyond
// them in one batch may as well be wrong itself.
bool counted_more(const ViolationWriter& w) {
  return w.hi() == 1 || !w.need().of.empty() || (w.need().exact && w.speaks_for_size());
}

// One element of many, beyond all others; or a few places of a map, all alike, which two regions that lie
// over each other give as well as a class does.
bool is_outlier(const ViolationWriter& w) {
  constexpr std::int64_t kMany = 8, kFew = 200;
  const bool region = w.facts.tensor.shape.size() > 2 && w.distinct() == 1 && w.only(w.integer()) &&
                      w.facts.scan.bad * kFew <= w.facts.scan.total;
  return !w.computes() && (region || w.facts.scan.bad == 1) && w.facts.scan.total >= kMany;
}

const char* one_of_them(const ViolationWriter& w) {
  return w.noun() == "label" ? "a class" : "a value that may occur";
}

// COCO's category_id are 1 to 90 for 80 categories, and the program speaks of them.
void fix_categories(ViolationWriter& w) {
  if (!w.facts.categories || w.noun() != "label") return;
  w.fix(
      "if they are category_id as annotations have them, these have gaps and begin at 1: number them, number "
      "= {id: i "
      "for i, id in enumerate(sorted(ids))}, with 1 added where 0 is background");
}

// Numbers that are no labels may be an observation, or computed: no record has them.
std::string correct_record(const ViolationWriter& w) {
  if (w.facts.assigned) return w.look_at_making("the label");
  if (w.noun() == "value" && w.facts.sample)
    return "correct it where it is made: in its record, or by the code that numbers such values";
  return w.noun() == "label"
             ? "correct it where it is made: in its record, or by the code that numbers the labels"
             : "correct it where it is made";
}

void write_too_few_outputs(ViolationWriter& w) {
  const bool known = counted_more(w);
  if (!known) fix_categories(w);
  w.finding().cause = known ? Cause::kNumClassesMismatch : Cause::kLabelOutOfRange;
  w.finding().also = {known ? Cause::kLabelOutOfRange : Cause::kNumClassesMismatch};
  if (!known && is_outlier(w) && !w.many_beyond() && w.op() != "ctc_loss") {
    w.fix(w.is_alone() ? fmt::format("{}: {}", w.alone_text(), correct_record(w))
                       : fmt::format("if {} is not {}, {}: {}", w.value(), one_of_them(w), correct_record(w),
                                     w.outside()));
    w.fix_sample();
    if (w.fix_size(Situation::kClasses, more_outputs(w)) && w.maybe_from_one())
      w.fix(w.from_one(w.in_code("labels")));
    return;
  }
  if (w.is_end_of_cut()) {
    w.fix(fmt::format("{}: {}", w.look_at_computation("the labels"), w.outside()));
    return;
  }
  if (!known && all_beyond(w)) {
    fix_all_beyond(w);
    w.fix_sample();
    w.fix_size(Situation::kClasses, more_outputs(w));
    return;
  }
  if (!known && w.computes() && w.layer().empty() && w.op() != "ctc_loss") {
    w.fix(fmt::format("{}: {}", w.look_at_computation("the labels"), w.outside()));
    if (w.op() == "cross_entropy" && w.facts.source.empty()) fix_places_of_batch(w);
    return;
  }
  // The program computes them, or its model does: a batch says nothing of how many there may be.
  if (!known && w.op() == "one_hot" && w.noun() == "value" && !w.facts.sample && w.facts.source.empty() &&
      w.facts.library.caller.empty() && !w.maybe_from_one()) {
    w.fix(fmt::format("{}: {}", w.look_at_making("the value"), w.outside()));
    w.fix(fmt::format(
        "if {} is a limit of the program's own (a capacity, a window), mask or leave out what lies "
        "beyond before the call; if it is not, num_classes has to be as large as all values need, "
        "and what takes the result as wide",
        w.hi()));
    return;
  }
  auto& fixes = w.finding().fix;
  const auto begin = static_cast<std::ptrdiff_t>(fixes.size());
  const bool open = w.fix_size(Situation::kClasses, more_outputs(w));
  if (!open && !known)  // of a size that is counted it is asked why: the numbers are looked at first
    fixes.insert(fixes.begin() + begin, fmt::format("{}: {}", w.look_at_making("the label"), w.outside()));
  if (open) {
    const bool other = w.maybe_from_one();
    if (other) w.fix(w.from_one(w.in_code("labels")));
    const bool no_data = !w.facts.sample && w.facts.source.empty();
    const bool made = w.computes() || (w.facts.sample && w.facts.sample->by == "hand");  // no record's
    const std::string mend = made                          ? w.look_at_computation("the labels")
                             : no_data || w.facts.assigned ? w.look_at_making("the " + w.noun())
                                                           : fmt::format("correct the {}", w.nouns());
    // What one batch shows asks to be looked at first; only all labels say how many classes there are.
    const std::string unless =
        mend.starts_with("look") ? "" : fmt::format("if {} is not {}, ", w.value(), one_of_them(w));
    const std::int64_t kinds =
        w.facts.seen ? w.facts.seen->kinds.value_or(w.facts.seen->here.value_or(0)) : 0;
    // Then it is the size, as a rule; the statement that made them is looked at first where it is known.
    const bool dense = w.seen_min() == 0 && kinds == w.needed() && !w.facts.assigned;
    if (known)
      w.fix(fmt::format("if {}, {}: {}", other ? "neither" : "not", mend, w.outside()));
    else if (dense && !other && fixes.back().starts_with("see which"))  // and no library's setting
      w.fix(fmt::format("if the size is right, {}: {}", mend, w.outside()));
    else
      fixes.insert(fixes.begin() + begin, fmt::format("{}{}: {}", unless, mend, w.outside()));
  }
  if (w.hi() == 1) {
    w.fix(
        "or, for two classes and one output: F.binary_cross_entropy_with_logits(logits.squeeze(1), "
        "labels.float()); the class is then logits > 0, in place of argmax");
    return;
  }
  if (w.op() == "ctc_loss")
    w.fix("count the blank: log_probs needs one class more than the alphabet has letters");
}

// A mask whose 255 and whose classes were mixed: many different values in between; or, where 255 is ignored,
// any from a quarter of it, the least weight of a neighbour that halving gives.
bool interpolated(const ViolationWriter& w) {
  constexpr std::size_t kKinds = 3;
  constexpr std::int64_t kVoid = 255;
  if (w.facts.tensor.shape.size() < 3 || w.hi() >= kVoid || w.integer() >= kVoid) return false;
  const bool many = w.distinct() >= kKinds && w.facts.scan.max == Scalar(kVoid);
  return many || (w.facts.scan.also == kVoid && w.integer() >= kVoid / 4 && w.integer() > 2 * w.hi());
}

// Interpolation makes them, and so does the brightness of the colours that a palette gives to classes.
void write_in_between(ViolationWriter& w) {
  if (w.facts.resizes && !w.facts.greys)
    w.finding().summary += "; values between the classes and 255 are what interpolation makes of a mask";
  if (w.facts.greys)
    w.fix(
        "if the masks are pictures with a palette or colours, turning them grey (.convert(\"L\")) puts "
        "brightness in the place of class numbers: np.array(Image.open(path)) keeps those of a palette");
  if (w.facts.resizes)
    w.fix(fmt::format(
        "{}resize masks without interpolation: mode=\"nearest\", Image.NEAREST, cv2.INTER_NEAREST",
        w.facts.greys ? "and " : ""));
  if (w.finding().fix.empty())
    w.fix(
        "look at how the masks are read and changed: numbers between the classes and 255 come of "
        "interpolation, or of the brightness of a picture whose classes are a palette's numbers");
}

// Numbers of several kinds in maps of a program that turns pictures grey: brightness, of whatever size.
bool are_greys(const ViolationWriter& w) {
  return w.facts.greys && w.facts.tensor.shape.size() >= 3 && w.distinct() >= 2 && !counted_more(w);
}

void write_greys(ViolationWriter& w) {
  w.finding().also = {Cause::kNumClassesMismatch};
  write_in_between(w);
  w.fix(fmt::format("if not, {}: {}", correct_record(w), w.outside()));
  w.fix_sample();
  if (w.finding().layer) w.finding().layer->needed.reset();
}

// One far beyond the range among so many that as many classes would have shown more of them.
bool is_stray(const ViolationWriter& w) {
  constexpr std::int64_t kExpected = 50;
  const std::int64_t over = w.needed() - w.hi();
  return w.above() && w.facts.scan.bad == 1 && over > 1 && w.needed() > 0 &&
         w.seen_count() / w.needed() * over >= kExpected;
}

void write_broken_label(ViolationWriter& w) {
  w.finding().also = {Cause::kNumClassesMismatch};
  fix_categories(w);
  if (w.fix_hidden_class()) return;
  w.fix_sample();
  if (interpolated(w)) return write_in_between(w);
  const std::string unless =
      w.facts.counted ? "" : fmt::format("if {} is not {}, ", w.value(), one_of_them(w));
  if (all_beyond(w) && !w.facts.counted)
    fix_all_beyond(w);
  else
    w.fix(fmt::format("{}{}: {}", unless,
                      w.computes() ? w.look_at_computation("the labels") : correct_record(w), w.outside()));
  std::string larger = w.facts.counted ? std::string() : w.enlarge(Situation::kClasses, w.need());
  if (larger.empty() && w.op() == "one_hot") larger = more_outputs(w);
  if (w.facts.counted) {
    w.finding().summary +=
        fmt::format("; {} is {}: there is no such class", w.facts.counted->of, w.facts.counted->count);
  } else if (w.is_moved()) {
    w.write_moved();
  } else if (w.is_sparse()) {
    w.write_sparse();
  } else if (w.write_counted_size()) {
    // More outputs would stand for nothing that is counted.
  } else if (!larger.empty() && !w.is_alone() && !is_stray(w) && !(w.is_rare() && !w.only(w.hi()))) {
    w.fix_if_meant(Situation::kClasses, w.need(), larger);
  }
  fix_range_check(w);
}

// Every label that is known is the mark: a test set whose labels are held back.
bool unlabelled(const ViolationWriter& w) {
  return w.all_bad() && w.only(w.integer()) && w.seen_max() == w.integer();
}

void write_unlabelled(ViolationWriter& w) {
  w.finding().summary += fmt::format("; every label {} is {}: this data set seems to have none",
                                     w.facts.seen ? w.seen_where() : "of this call", w.integer());
  w.fix("compute the loss and the scores on data that has labels: test sets often hold theirs back");
  w.fix("to predict only, call the model without labels: an ignored label everywhere makes the loss NaN");
}

// The highest class is missing, among labels enough to show it, and -1 is there: 1 was taken off labels that
// began at 0. To ignore -1 would leave a class out.
bool shifted_down(const ViolationWriter& w) {
  constexpr std::int64_t kEnough = 30;  // labels for each class: a rare one may be missing among fewer
  const bool enough = w.all_seen() || w.seen_count() / kEnough >= w.hi();
  // A class is as frequent as others; a few of many mark something.
  constexpr std::int64_t kShare = 4;
  if (w.facts.scan.bad * kShare * w.hi() < w.facts.scan.total) return false;
  return w.integer() == -1 && w.only(-1) && w.op() != "ctc_loss" && w.hi() > 1 && w.hi() != kUnbounded &&
         w.seen_max() == w.hi() - 2 && enough;
}

void write_shifted_down(ViolationWriter& w) {
  w.finding().summary += fmt::format(
      "; labels run from -1 to {}, as many as there are classes: they begin at -1 in place of 0", w.hi() - 2);
  w.fix(fmt::format(
      "number them from 0 where {} {} made: add 1, or, where 1 is taken off them, take nothing off",
      w.users(), w.facts.variable ? "is" : "are"));
  w.fix(
      "only if -1 marks what is not to count, name it to the loss as ignore_index: else a whole class is "
      "left "
      "out");
  w.fix_sample();
}

// As many numbers as there are classes, but from below 0 on: -7 to 7 for 15. Where -1 alone is below, see
// above.
std::optional<std::int64_t> begins_below(const ViolationWriter& w) {
  constexpr std::int64_t kSome = 3;
  if (!w.facts.scan.min || !is_integer(*w.facts.scan.min) || w.hi() < kSome || w.hi() == kUnbounded)
    return {};
  const std::int64_t here = std::get<std::int64_t>(*w.facts.scan.min);
  const std::int64_t low = std::min(here, w.seen_min().value_or(here));
  if (low > -2 || w.op() == "ctc_loss" || w.seen_max() - low + 1 != w.hi()) return {};
  return -low;
}

void write_below(ViolationWriter& w, std::int64_t offset) {
  w.finding().summary +=
      fmt::format("; labels run from {} to {}, as many as there are classes", -offset, w.hi() - 1 - offset);
  w.fix(
      fmt::format("{}: {}; a number that is taken off there (a first class, an offset) may be {} too high: "
                  "each layer needs its "
                  "labels from 0 on",
                  w.look_at_computation("the labels"), w.outside(), offset));
  w.fix_sample();
}

// The source says what -1 stands for.
void write_codes(ViolationWriter& w) {
  w.finding().summary += "; " + w.of_codes();
  w.fix_sample();
  const bool unknown = w.facts.codes->unknown || w.facts.codes->edges;
  if (w.facts.codes->edges)
    w.fix(
        "a value beyond the edges, or on the lowest one, is in no bin: pd.cut(..., include_lowest=True), "
        "edges that go "
        "from -inf to inf");
  if (w.facts.codes->unknown)
    w.fix(
        "a name that is written otherwise there (case, blanks), or that the list lacks, is to be corrected "
        "or "
        "added: to leave it out would hide it");
  w.fix(fmt::format("{0} {1} = {1}[{1} >= 0], and the same rows of all that goes with them",
                    unknown ? "only rows that have no label at all are left out before:"
                            : "leave the rows without a label out before:",
                    w.in_code("labels")));
  if (w.has_ignore_index() && !unknown) w.fix("or let the loss leave them out: ignore_index=-1");
}

// The program counts from 1 and takes 1 off: -1 was a 0.
void write_one_taken_off(ViolationWriter& w) {
  w.finding().summary += fmt::format("; `{}` makes -1 of 0", w.facts.computed->text);
  // Of a map some places have no class as a rule; of a record that holds 0 alone nobody knows that.
  const bool map = w.has_ignore_index() && w.facts.tensor.shape.size() > 2 && !w.facts.sample;
  w.fix(fmt::format(
      "{}: if what is 0 there is no class (not known), {}; if it is one, "
      "take nothing off, and let the model have an output for it",
      w.look_at_computation("the labels"),
      map ? "let the loss leave it out, ignore_index=-1" : "correct such records, or leave them out"));
  w.fix_sample();
}

// More than 1 is taken off, by the only statement that does so: no mark, but a number that began elsewhere.
void write_taken_off(ViolationWriter& w) {
  const MadeAt& at = *w.facts.taken_off;
  const std::int64_t before = w.integer() + w.facts.taken_number;
  w.finding().summary += fmt::format("; `{}` makes {} of {}", at.text, w.value(), before);
  w.fix(
      fmt::format("look at `{}` ({}): where it was {} before, nothing below {} was expected: if each file or "
                  "record numbers its own, look the classes up by name, also for labels that seem right",
                  at.text, file_and_line(at.file, at.line), before, w.facts.taken_number));
  w.fix_sample();
}

void write_negative(ViolationWriter& w) {
  if (shifted_down(w)) return write_shifted_down(w);
  if (const auto offset = begins_below(w)) return write_below(w, *offset);
  if (w.integer() == -100 && w.has_ignore_index()) {
    w.finding().summary +=
        fmt::format("; -100 is PyTorch's default ignore label, but this call has ignore_index={}",
                    w.facts.scan.also.value_or(-100));
    w.fix(fmt::format(
        "one number has to mark what is not to count: ignore_index=-100, if {} is a class or does not "
        "occur; else write {} where the labels get -100",
        w.facts.scan.also.value_or(-100), w.facts.scan.also.value_or(-100)));
    return;
  }
  if (w.facts.codes && w.integer() == -1 && w.only(-1)) return write_codes(w);
  if (w.answers_nothing()) return w.write_not_found();
  if (w.one_taken_off() && !unlabelled(w)) return write_one_taken_off(w);
  if (w.facts.taken_number > 1 && w.integer() + w.facts.taken_number >= 0 && !unlabelled(w))
    return write_taken_off(w);
  w.write_floored();
  // Only these mark what is not to count; -3 marks nothing.
  const bool marks = marks_ignored(w.integer());
  if (marks && w.op() != "one_hot" && unlabelled(w)) return write_unlabelled(w);
  if (w.integer() == -1 && w.only(-1) && !w.both_sides() && write_signed_classes(w)) return w.fix_sample();
  if (w.distinct() == 1 && w.only(w.integer()) && !w.both_sides() &&
      (marks || w.facts.contract->predicate == Predicate::kEndedIndex)) {
    write_label_mark(w, w.integer());
    w.fix_sample();
    return;
  }
  w.fix_sample();
  const std::string how_many = w.hi() == kUnbounded
                                   ? fmt::format("{} of {} {} negative", w.facts.scan.bad, w.facts.scan.total,
                                                 w.facts.scan.bad == 1 ? "is" : "are")
                                   : w.outside();
  w.fix(fmt::format("a {} must not be negative: {}: {}", w.noun(), how_many,
                    w.look_at_computation("the " + w.nouns())));
}

}  // namespace

void diagnose_label(ViolationWriter& w) {
  write_summary(w);
  if (w.write_narrow()) return;
  if (w.above() && (w.write_calendar() || w.write_end() || w.write_namesake() || w.write_other_head()))
    return;
  if (w.facts.filled && w.only(w.hi())) return write_filled(w);
  constexpr std::size_t kSeveral = 3;  // of two, one may be a mark
  if (w.both_sides() && (w.facts.tensor.shape.size() >= 3 || w.distinct() >= kSeveral))
    return write_resized(w);
  constexpr std::int64_t kIgnored = 255;  // VOID in PASCAL VOC, Cityscapes and their descendants
  if (!w.above()) {
    write_negative(w);
  } else if (w.only(kIgnored) && w.hi() < kIgnored && !(w.facts.seen && w.facts.seen->max > kIgnored)) {
    two_colours(w) ? write_two_colours(w) : write_label_mark(w, kIgnored);
  } else if (w.only(w.integer()) && is_wrapped_ignore(w)) {
    write_wrapped_ignore(w);
  } else if (w.integer() > kIgnored && w.only(w.integer()) && is_wrapped(w, w.integer())) {
    write_label_mark(w, w.integer());
  } else if (w.write_own_number()) {
    w.finding().also = {Cause::kNumClassesMismatch};
  } else if (w.is_padding()) {
    write_padding(w);
  } else if (are_places(w)) {
    write_places(w);
  } else if (are_greys(w)) {
    write_greys(w);
  } else if (w.made_between()) {
    w.write_made_between();
  } else if (w.facts.named_classes > 0) {
    w.facts.value_is_named ? write_all_named(w) : write_unnamed(w);
  } else if (w.write_part() || w.write_trained()) {
    w.finding().also = {Cause::kNumClassesMismatch};
    w.fix_sample();  // a size that fits this part alone would mix two lists of classes
    if (w.finding().layer) w.finding().layer->needed.reset();
  } else if (one_based(w)) {
    write_one_based(w);
  } else if (w.write_product()) {
    w.finding().also = {Cause::kNumClassesMismatch};
    w.fix_sample();
  } else if (one_based_part(w)) {
    write_one_based_part(w);
    write_too_few_outputs(w);
    w.fix_sample();
  } else if (w.write_numbered_here()) {
    // That is all.
  } else if (has_gaps(w)) {
    write_gaps(w);
  } else if (w.likely() && !interpolated(w)) {
    write_too_few_outputs(w);
    fix_resized(w);
    w.fix_sample();
  } else {
    write_broken_label(w);
    fix_resized(w);
  }
}

}  // namespace trapline::diagnose
