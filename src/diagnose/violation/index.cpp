// Indexing, gather, scatter and their relatives; counts and offsets.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "diagnose/frame.hpp"
#include "diagnose/markers.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

// The dimension that is indexed, as a person counts it; nullopt when it is not known.
std::optional<std::int64_t> dimension(const ViolationWriter& w) {
  const Contract& row = *w.facts.contract;
  if (row.predicate == Predicate::kIndexList) {
    if (w.facts.selected) return std::nullopt;  // x[0, index]: the program counts those of x
    const std::int64_t d = w.facts.scan.list_position.value_or(0);
    return w.facts.size("self", d) == w.hi() ? std::optional(d) : std::nullopt;
  }
  if (row.bound != Bound::kSizeOfDim || row.dim_arg.empty()) return std::nullopt;
  auto d = w.facts.integer(std::string(row.dim_arg));
  const auto found = w.facts.args.find(std::string(row.bound_arg));
  if (d && *d < 0 && found != w.facts.args.end() && found->second.tensor) {
    *d += static_cast<std::int64_t>(found->second.tensor->shape.size());
  }
  return d;
}

std::string indexed(const ViolationWriter& w) {
  const Contract& row = *w.facts.contract;
  const std::string count = fmt::format("{} element{}", w.hi(), w.hi() == 1 ? "" : "s");
  if (row.bound == Bound::kNumel) return fmt::format("the input has {}", count);
  if (row.bound == Bound::kProduct) return fmt::format("the output has {} per channel", count);
  if (row.bound == Bound::kSpatial) return fmt::format("each plane of the input has {}", count);
  if (row.bound == Bound::kInteger) return fmt::format("that dimension has {}", count);
  const auto d = dimension(w);
  return d ? fmt::format("dimension {} of the input has {}", *d, count)
           : fmt::format("that dimension of the input has {}", count);
}

// Something is put where the index says: enlarging what is written to may hide a wrong index.
bool writes(const ViolationWriter& w) {
  const std::string op = w.op();
  return op.starts_with("scatter") || op == "index_add" || op == "index_copy" || op == "index_fill" ||
         op == "index_reduce" || op == "x[index] = value";
}

// One value far from the others marks what is not to count, and the call would take it for a place.
bool ignore_label(const ViolationWriter& w) {
  if (w.facts.contract->bound != Bound::kSizeOfDim || !w.only(w.integer()) || w.computes()) return false;
  constexpr std::int64_t kVoid = 255;
  if (w.facts.scan.bad >= w.facts.scan.total) return false;
  if (w.above()) return w.integer() == kVoid && w.hi() < kVoid && w.seen_max() == kVoid;
  return writes(w) && marks_ignored(w.integer());
}

void write_ignore_label(ViolationWriter& w) {
  constexpr std::int64_t kByte = 255;                                 // also that of -1
  const bool byte = w.above() && w.integer() == kByte && !writes(w);  // a mask of classes is scattered
  w.finding().summary +=
      byte ? fmt::format("; 255 may be an ignore label, which {} does not have, or -1 as a byte", w.op())
           : fmt::format("; {} looks like an ignore label, which {} does not have", w.value(), w.op());
  const std::string knob = w.ignore_knob();
  if (!knob.empty()) return w.fix(knob);
  const std::string name = w.own("the index");
  if (!w.facts.library.caller.empty() && !w.facts.variable) {  // the call is not the user's to change
    w.fix(fmt::format(
        "a library made the index of what it was given (labels, ids): look at where that is made: {}; if {} "
        "marks what is not to count, such an entry has to be left out before {} is called",
        w.outside(), w.value(), w.facts.library.caller));
    return;
  }
  if (w.is_padding()) {
    w.fix(fmt::format(
        "the collate function fills {} with {}: leave those elements out before the call, or fill with the "
        "number that the loss itself leaves out (an argument of it, as a rule: padding_idx, ignore_index)",
        name, w.value()));
    return;
  }
  if (w.integer() == -1 && w.facts.table != "labels")
    w.fix(
        fmt::format("-1 is also what a search gives that found nothing: {}", w.look_at_making("the index")));
  if (byte)
    w.fix(fmt::format(
        "see where {} is made: if 255 is -1 as a byte (uint8, `& 255`), give it its sign back, and "
        "a place of its own",
        name));
  w.guess(fmt::format(
      "if {} in {} marks what is not to count, all that goes with such elements has to be left out, "
      "and not of this call alone",
      w.value(), name));
}

// Where to look: the user's own name of the index, how much of it is bad, and what that looks like.
void fix_look(ViolationWriter& w) {
  const ScanFact& scan = w.facts.scan;
  const std::string look = w.facts.computed || w.facts.passed_as ? w.look_at_computation("the index")
                                                                 : w.look_at_value("the index");
  constexpr std::int64_t kTelling = 4;
  if (scan.bad == scan.total && scan.total >= kTelling && w.above()) {
    const std::string least = !scan.min              ? std::string()
                              : scan.min == scan.max ? fmt::format(", all are {}", to_text(*scan.min))
                                                     : fmt::format(", {} is the lowest", to_text(*scan.min));
    // A little beyond the end is a step too far; numbers of another tensor go far beyond it.
    const bool far = scan.max && is_integer(*scan.max) && std::get<std::int64_t>(*scan.max) >= 2 * w.hi();
    w.fix(fmt::format("{}: all {} are outside {}{}{}", look, scan.total, w.range(), least,
                      far ? ": they may be meant for another tensor, or be numbers of another kind" : ""));
    return;
  }
  const std::string most =
      scan.max && w.above() && !w.is_alone() ? fmt::format(", {} is the highest", to_text(*scan.max)) : "";
  w.fix(fmt::format("{}: {}{}{}", look, w.outside(), most, w.above() ? of_unsigned(w) : ""));
}

void fix_below(ViolationWriter& w) {
  if (w.write_narrow()) return;
  const bool wraps = w.facts.scan.lo < 0;
  if (w.of_nan()) {
    w.finding().summary += "; " + w.broken();
    w.fix(
        fmt::format("mend it, or leave it out, before {} is computed of it: no comparison with NaN "
                    "holds, so that a search among edges finds nothing",
                    w.own("the index")));
    return;
  }
  if (wraps && w.only(-100)) {
    w.finding().summary += "; -100 is the ignore label of losses";
    const std::string knob = w.ignore_knob();
    if (!knob.empty()) return w.fix(knob);
    if (!w.facts.library.caller.empty() && w.facts.variable) {  // the index is made inside the library
      w.fix(fmt::format(
          "if it marks padding, put 0 in its place in {} before {} is called, and leave those results out",
          w.own(""), w.facts.library.caller));
      return;
    }
    w.fix(
        fmt::format("if it marks padding, keep it out of the index: {0}.masked_fill({0} == -100, 0), "
                    "and leave those results out",
                    w.in_code("index")));
    return;
  }
  const bool mark = w.only(w.integer()) && !w.all_bad() && !w.computes();
  if (wraps && !mark) {
    fix_look(w);
    w.fix(
        "negative indices count from the end, and no further than to the first: what goes beyond that comes "
        "of an offset or other arithmetic, and then those that are not so low are wrong as well");
    return;
  }
  if (wraps) {
    w.fix(w.look_at_value("the index") + ": " + w.outside());
    w.fix(fmt::format(
        "negative indices count from the end, down to {}: where such a number marks something (no "
        "match, background), those above it take another element without a word: {} only where it "
        "is not negative, and leave the other results out",
        w.facts.scan.lo, "index with " + w.own("it")));
    return;
  }
  // One negative value, or -1 or -100 among them, marks padding: counting it from the end would make a real
  // element of it, without a word.
  const std::int64_t kMark = w.has(-100) ? -100 : -1;
  const bool lower = w.facts.scan.min && is_integer(*w.facts.scan.min) &&
                     std::get<std::int64_t>(*w.facts.scan.min) < kMark;  // of other numbers, too
  const bool marks = !lower && (w.has(-1) || w.has(-100));
  if (writes(w)) return fix_look(w);
  // Padding stands beside what it pads: where every element is the same, something else made them.
  constexpr std::int64_t kTelling = 4;
  if (w.only(w.integer()) && w.facts.scan.bad == w.facts.scan.total && w.facts.scan.total >= kTelling) {
    if (explain_broken_weights(w)) return;
    w.fix(fmt::format("{}: all {} are {}: a search that found nothing, or numbers that are NaN",
                      w.look_at_value("the index"), w.facts.scan.total, w.value()));
    return;
  }
  if (w.facts.computed || w.facts.drawn) {  // what arithmetic or chance made marks nothing
    w.fix(fmt::format("{} does not count negative indices from the end: {}: {}", w.op(),
                      w.look_at_computation("the index"), w.outside()));
    if (w.one_taken_off())
      w.fix(
          "what is 0 there, before 1 is taken off (a length), has no last element: leave such records out "
          "before, or see why they are empty");
    return;
  }
  if (marks || (w.only(w.integer()) && (marks_nothing(w.integer()) || w.is_own_mark() || w.is_filling()))) {
    const std::string knob = w.ignore_knob();
    if (!knob.empty()) w.fix(knob);
    if (!w.facts.library.caller.empty()) {  // the call is not the user's to change
      w.fix(fmt::format(
          "if {} in {} marks what is not to count, such elements have to be left out before {} is called",
          w.value(), w.own("the index"), w.facts.library.caller));
      return;
    }
    if (w.answers_nothing()) return w.write_not_found();
    w.write_floored();
    if (w.is_filling()) w.fix(w.look_at_filling());
    const bool own = w.is_own_mark(), known = own || w.is_filling();
    const bool search = w.integer() == -1 && !w.is_padding() && !known;
    if (search)
      w.fix(
          fmt::format("-1 may be what a search gives that found nothing (str.find(), .get(key, -1)), or a "
                      "length of 0 less 1: "
                      "{}",
                      w.look_at_making("the index")));
    w.guess(
        fmt::format("if {} marks {}, {} has no place for it: leave those elements out, or give them "
                    "a valid index and leave their results out",
                    own ? w.written_at() : w.value(), own ? "what does not count" : "padding", w.op()));
    if (search || known) return;
  }
  if (marks) {
    w.fix(fmt::format("{} does not count negative indices from the end", w.op()));
    return;
  }
  // Several different ones: what a difference is, counted from the wrong end or without its offset.
  const std::string why =
      w.only(w.integer())
          ? fmt::format("see what {} stands for: something that is missing, or a count that went below 0",
                        w.value())
          : std::string(
                "see whether these count from the end of something, lack an offset, or are signed where "
                "they are to be unsigned");
  w.fix(fmt::format("{} does not count negative indices from the end: {}: {}{}; {}", w.op(),
                    w.look_at_value("the index"), w.outside(),
                    w.facts.scan.min ? fmt::format(", {} is the lowest", to_text(*w.facts.scan.min)) : "",
                    why));
}

// Places one after the other that begin inside, where a pointer has come to, and end outside.
bool runs_over_the_end(const ViolationWriter& w) {
  const auto& [min, max] = std::pair(w.facts.scan.min, w.facts.scan.max);
  if (!min || !max || !is_integer(*min) || !is_integer(*max) || w.facts.scan.total < 2) return false;
  const std::int64_t low = std::get<std::int64_t>(*min), high = std::get<std::int64_t>(*max);
  return low > 0 && low < w.hi() && high - low + 1 == w.facts.scan.total && w.facts.tensor.shape.size() == 1;
}

// What is written to may have had another size in earlier calls: their highest index says nothing here.
std::string basis_here(const ViolationWriter& w, const Need& need) {
  const auto& seen = w.facts.seen;
  if (!seen || seen->dataset || !w.facts.scan.max || !is_integer(*w.facts.scan.max)) return w.basis(need);
  const std::int64_t max = std::get<std::int64_t>(*w.facts.scan.max);
  return fmt::format(" ({} at least: {} is the highest of this call)", next(max), max);
}

// As many numbers as there are elements, in a run that begins elsewhere: 24 to 67 for 44 residues.
bool is_shifted_run(const ViolationWriter& w) {
  const auto& [min, max] = std::pair(w.facts.scan.min, w.facts.scan.max);
  if (!min || !max || !is_integer(*min) || !is_integer(*max) || w.hi() < 3) return false;
  const std::int64_t low = std::get<std::int64_t>(*min), high = std::get<std::int64_t>(*max);
  // Two ends that are so far apart may be chance; that nearly all between them occur is not.
  const auto kinds = w.facts.seen ? w.facts.seen->here : std::nullopt;
  if (kinds && 10 * *kinds < 9 * w.hi()) return false;
  return low > 1 && high - low + 1 == w.hi() && w.facts.scan.total >= w.hi();
}

// The index was made of what the variable held before.
void fix_stale(ViolationWriter& w) {
  const AssignedFact& cut = *w.facts.cut_since;
  w.fix(
      fmt::format("`{0} = {1}` (line {2}) is below that: where the index was made of `{0}`, or of what goes "
                  "with it, as it was before, make it after the cut, or cut it in the same way",
                  cut.name, cut.at.text, cut.at.line));
}

// The index may be right, and what it is used on too short: not where one number lies far from all others.
bool write_indexed(ViolationWriter& w) {
  if (!w.facts.indexed || !w.layer().empty() || !w.facts.library.caller.empty()) return false;
  if (w.far_beyond() || (w.is_alone() && !w.only(w.hi()))) return false;
  const auto& [name, at, entered] = *w.facts.indexed;
  w.fix(fmt::format(
      "what is indexed is `{} = {}` ({}), with {} places: see that these and the numbers are counted alike",
      name, at.text, file_and_line(at.file, at.line), w.hi()));
  return true;
}

// `q.gather(0, actions)` in place of 1: the numbers are right, and another dimension is meant.
void fix_dimension(ViolationWriter& w) {
  const OtherDimensionFact& other = *w.facts.other_dimension;
  const std::int64_t d = dimension(w).value_or(0);
  const std::string room = fmt::format(
      "see whether dimension {} is meant: it has {} elements, room for all of these", other.dim, other.size);
  if (!other.batch) return w.fix(room);
  auto& fixes = w.finding().fix;
  const std::string said =
      fmt::format("{}; dimension {}, which is indexed, is as large as the batch", room, d);
  if (!fixes.empty()) fixes.front() = "if not, " + fixes.front();
  fixes.insert(fixes.begin(), said);
}

// The line is a layer's that is called several times: these numbers were right for what it was given before.
void fix_indexed_before(ViolationWriter& w) {
  w.fix(fmt::format(
      "an earlier call of this line took the same index ({} numbers, up to {}) for [{}]: look at what "
      "is indexed here, rather than at the index",
      w.facts.scan.total, to_text(*w.facts.scan.max), fmt::join(w.facts.fits->shape, ", ")));
  w.fix(fmt::format(
      "what is indexed has {} elements there: see whether it is what that call was given, or something "
      "that was made smaller since (pooled, filtered, cut)",
      w.hi()));
}

// `torch.tensor([len(t) for t in texts])`: each is as long as there are places, or shorter.
bool is_length(const ViolationWriter& w) {
  if (!w.only(w.hi())) return false;
  const std::string text = w.facts.computed   ? w.facts.computed->text
                           : w.facts.assigned ? w.facts.assigned->at.text
                                              : std::string();
  return text.find("[len(") != std::string::npos || text.starts_with("len(") ||
         text.find("torch.tensor(len(") != std::string::npos;
}

void fix_above(ViolationWriter& w) {
  if (w.facts.contract->bound == Bound::kProduct) {
    const std::int64_t most = w.seen_max();
    w.fix(fmt::format(
        "see whether kernel_size and stride of the unpooling are those of the pooling that gave the "
        "indices, and these are of the same layer: they go up to {}, and there is room for {}",
        most, w.hi()));
    if (next(most) < 2 * w.hi())  // what a rest at the edge makes of it; a call takes no other size
      w.fix(
          "if they are, name the size that the pooling was given to the unpooling's call: "
          "output_size=x.size()");
    return;
  }
  if (w.facts.contract->bound == Bound::kSpatial) {
    w.fix(fmt::format("pass the indices that {} returned for this very input", w.op()));
    return;
  }
  const Need need = w.need();
  if (w.is_padding()) {
    w.finding().summary += fmt::format("; {} is what short rows are filled with", w.value());
    w.fix(fmt::format(
        "fill {} with a number that is valid, 0 for one, where the collate function does it, and leave those "
        "elements out of the result: a mask says which they are",
        w.own("the index")));
    return;
  }
  if (w.made_between()) return w.write_made_between();
  if (write_pairs(w)) return;
  const bool one_output = w.facts.layer && w.facts.layer->attribute.starts_with("out_");
  if (w.hi() == 1 && one_output && !writes(w) && w.only(1) && w.facts.scan.min == Scalar(std::int64_t{0})) {
    w.fix(
        "the index holds 0 and 1, as the labels of two classes do, and there is one column: a model with one "
        "output has none for each of two classes: leave out what chooses one (target=None, where the "
        "function takes that), or choose 0 for all");
    w.fix("if they are no labels, " + w.look_at_value("the index"));
    return;
  }
  if (!is_shifted_run(w) && w.write_numbered_here()) return;
  if (w.facts.fits && w.facts.fits->name.empty() && w.facts.scan.max) return fix_indexed_before(w);
  if (w.is_alone()) w.fix_sample();
  fix_look(w);
  if (is_length(w))
    return w.fix(
        "a length counts from 1, and places from 0: see whether a length of 1 is to have "
        "place 0 (then 1 is taken off) or place 1 (then there is one place more)");
  if (w.facts.cut_since) return fix_stale(w);
  if (w.is_cut_short()) return w.fix(w.cut_short_text());
  if (w.facts.exchanged_index) {
    w.fix(
        "this index and another one of the call would fit each other's dimensions: see whether the two are "
        "exchanged, here or where they are made, or what is indexed is another one's");
    return;
  }
  if (w.facts.other_dimension) return fix_dimension(w);
  if (is_shifted_run(w) &&
      !w.computes()) {  // what arithmetic has moved is moved on purpose, or by its mistake
    w.fix(
        fmt::format("they run from {} to {}, which is as many numbers as there are elements: they seem to be "
                    "counted from {} here: "
                    "see where their numbering begins, and take that off",
                    to_text(*w.facts.scan.min), to_text(*w.facts.scan.max), to_text(*w.facts.scan.min)));
    return;
  }
  // What begins at 1 and ends at the size itself was made for this very tensor.
  const bool from_one = w.seen_min() == 1 && w.seen_max() == w.hi();
  const bool several = w.facts.scan.total > 1 && w.distinct() > 1;  // one number fits anything
  if (w.facts.fits && several && !writes(w) && !from_one) {
    w.fix(fmt::format(
        "all of it would fit {} [{}]: see whether the index was made for that, and then which of the "
        "two is another's here",
        w.facts.fits->name, fmt::join(w.facts.fits->shape, ", ")));
  }
  // What is computed, or cut to each batch, tells nothing by where it begins.
  const bool of_data = w.facts.sample && w.facts.sample->by.empty() && !w.facts.sample->likely;
  const bool counted = w.maybe_from_one();
  if ((of_data || w.all_seen()) && counted) w.fix(w.from_one(w.in_code("index")));
  const bool library = !w.knob(Situation::kIndex, need).empty();
  if (!library && !w.layer().empty() && need.of.empty() && w.facts.seen && w.facts.seen->kinds == w.hi()) {
    const std::string look = w.finding().fix.back();
    w.finding().fix.pop_back();
    if (w.write_renumber(look)) return;
    w.fix(look);
  }
  w.fix_size(Situation::kIndex, "");
  if (library || !w.layer().empty()) return;
  const bool indexed = w.rule_of_computation().empty() && write_indexed(w);
  if (!writes(w)) {
    // The size itself alone is a step too far, or what a search gives that found nothing.
    if (of_data && w.likely() && !w.of_one_record() && !from_one && !w.facts.fits &&
        w.facts.library.caller.empty() && !w.only(w.hi()))
      w.fix(
          fmt::format("see whether both are made of the same data, and counted in the same way: there are {} "
                      "elements, and indices up to {}",
                      w.hi(), w.facts.scan.max ? to_text(*w.facts.scan.max) : w.value()));
    return;
  }
  if (runs_over_the_end(w)) {
    w.fix(fmt::format(
        "the places run on beyond the end by {0}: see whether their begin and their number are right; "
        "what is right and too long is split, or has {0} place{1} too few; a queue or a replay buffer "
        "goes on at the start, and only where the oldest may be overwritten",
        w.facts.scan.bad, w.facts.scan.bad == 1 ? "" : "s"));
  }
  if (counted || indexed) return;  // what has no 0 needs no place more
  if (w.facts.computed) return;    // the arithmetic is wrong, or the size that it goes by: both stand there
  constexpr std::int64_t kTimes = 4;  // nor is it the size where numbers lie so far beyond
  if (w.far_beyond() || (!need.exact && w.needed() / kTimes >= w.hi())) return;
  const auto d = dimension(w);
  const std::string dimension_is =
      fmt::format("only if {} is meant to have ", d ? fmt::format("dimension {}", *d) : "that dimension");
  w.guess(need.exact ? fmt::format("{}{} elements: make the tensor that is written to so large{}",
                                   dimension_is, need.count, w.basis(need))
                     : fmt::format("{}more than {} elements: make the tensor that is written to larger{}",
                                   dimension_is, w.hi(), basis_here(w, need)));
}

// The index is the labels of a loss, or of what makes them one-hot: wrong as labels are.
void write_labels(ViolationWriter& w) {
  const bool more = w.facts.counted && w.facts.counted->count > w.hi() && w.likely();
  w.finding().cause = more ? Cause::kNumClassesMismatch : Cause::kLabelOutOfRange;
  w.finding().also = {more ? Cause::kLabelOutOfRange : Cause::kNumClassesMismatch, Cause::kIndexOutOfRange};
  w.finding().summary += "; these are labels";
  if (w.fix_hidden_class()) return;
  if (!more && one_based(w)) return write_one_based(w);
  if (more) w.finding().summary += fmt::format(", and {} is {}", w.facts.counted->of, w.facts.counted->count);
  if (!more) {
    w.fix(fmt::format("{}: {}", w.look_at_making("the label"), w.outside()));
  }
  const std::string library = w.knob(Situation::kIndex, w.need());
  const bool gap = w.facts.classes && !w.facts.classes->missing.empty();
  const bool stray = w.distinct() == 1 && !w.all_seen();
  if (!more && library.empty() && !stray && (gap || !w.all_seen())) {  // a library's row numbers them itself
    w.guess(
        fmt::format("only if they are numbers of a list that has gaps (COCO's categories; BraTS has 0, 1, 2 "
                    "and 4), number them from 0: kinds = sorted(set(labels)); label = kinds.index(label), "
                    "for {} kinds at most",
                    w.hi()));
  }
  const bool size = more || (w.likely() && w.speaks_for_size());
  if (!w.fix_size(Situation::kIndex, "") && library.empty() && w.layer().empty() && size) {
    w.fix(fmt::format("{}give what {} {}{}", more ? "" : w.if_meant(),
                      writes(w) ? "they index (the scores, or what makes them one-hot)"
                                : "they index (weights of classes, a table)",
                      w.how_many(w.need(), writes(w) ? "classes" : "entries"), w.basis(w.need())));
  }
}

}  // namespace

void diagnose_index(ViolationWriter& w) {
  if (w.facts.contract->predicate == Predicate::kOffsets) return write_offsets(w);
  if (w.facts.contract->predicate == Predicate::kNonNegative) return write_count(w);
  if (w.hi() == 0) {
    w.finding().summary = fmt::format("{}, but {}: there is nothing to index", w.opening(), indexed(w));
    w.fix(
        "look at why it is empty; if it may be, say what the result is then: behind a bare `if x.numel():` "
        "the "
        "variables keep what they had before");
    w.fix_sample();
    return;
  }
  w.finding().summary = fmt::format("{}, but {}: valid indices are {}", w.opening(), indexed(w), w.range());
  if (w.above() && w.facts.table == "position") return write_position(w);
  if (w.facts.table == "labels" && !w.above()) {
    w.finding().cause = Cause::kLabelOutOfRange;
    w.finding().also = {Cause::kIndexOutOfRange};
  }
  if (ignore_label(w)) {
    if (w.facts.table == "labels") {
      w.finding().cause = Cause::kLabelOutOfRange;
      w.finding().also = {Cause::kIndexOutOfRange};
    }
    write_ignore_label(w);
  } else if (w.facts.table == "labels" && w.above()) {
    write_labels(w);
  } else {
    w.above() ? fix_above(w) : fix_below(w);
  }
  w.fix_sample();
}

}  // namespace trapline::diagnose
