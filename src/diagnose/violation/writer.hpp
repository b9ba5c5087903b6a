// One violation while its finding is written: the facts, the finding, and the phrases that every family uses.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "diagnose/violation/facts.hpp"

namespace trapline::diagnose {

// value + 1, as far as there is one: values come from memory that may be garbage.
constexpr std::int64_t next(std::int64_t value) {
  return value == std::numeric_limits<std::int64_t>::max() ? value : value + 1;
}

constexpr std::int64_t kAbsurdValue = std::int64_t{1} << 40;  // beyond every vocabulary and every dimension

// How many rows or classes are wanted, and how that is known.
struct Need {
  std::int64_t count = 0;
  bool exact = false;  // all was counted, and it looks like a size that is too small; else the least
  std::string of;      // what was counted: "len(tokenizer)"; empty: the values
};

class ViolationWriter {
 public:
  // Both outlive the writer.
  ViolationWriter(const Violation& violation, Finding& finding) : facts(violation), finding_(finding) {}

  const Violation& facts;

  Finding& finding() { return finding_; }
  const Finding& finding() const { return finding_; }
  void fix(std::string line) { finding_.fix.push_back(std::move(line)); }
  // What may be the case, and what to do then. It is said where the program's own statement that made the
  // numbers is not: who reads that needs no guess, and a guess that does not hold leads away from it.
  void guess(std::string line) {
    guesses_.push_back(line);
    fix(std::move(line));
  }
  // Takes the guesses back where a line names that statement.
  void settle_guesses();
  void fix_after_first(std::string line) {
    finding_.fix.insert(finding_.fix.begin() + (finding_.fix.empty() ? 0 : 1), std::move(line));
  }

  std::string op() const;        // "cross_entropy"
  std::string argument() const;  // "target"
  std::string element() const;   // "target[3]"; "target" without a position
  std::string value() const;     // "195"
  std::string opening() const;   // "cross_entropy: target[3] is 195"; "train.csv: label[3] is 195"
  std::string range() const;     // "[0, 195)"
  std::string noun() const;      // "label", "value" (that is made one-hot), "id", "index"
  // A label, or a value that is made one-hot: all that may occur are meant to have a place.
  bool is_class() const { return noun() == "label" || noun() == "value"; }
  std::string nouns() const;  // "labels", "ids", "indices"

  std::int64_t hi() const { return facts.scan.hi; }
  // The first offending value of an integer argument; 0 for others.
  std::int64_t integer() const;
  bool above() const { return facts.scan.reason == Reason::kAbove; }
  // Every offending value that is known is `wanted`.
  bool only(const Scalar& wanted) const;
  bool only(std::int64_t wanted) const { return only(Scalar(wanted)); }
  // `wanted` is one of the offending values that are known.
  bool has(std::int64_t wanted) const;
  // Distinct offending values that are known, at least one.
  std::size_t distinct() const;
  // Below and above the range at once: no padding and no table that is too small, but arithmetic.
  bool both_sides() const;
  // What the bad numbers were computed of is not finite: the batch's own numbers, or a variable; and how to
  // say so.
  bool of_broken_sample() const;
  bool of_nan() const;
  std::string broken() const;
  // Not one good value among several: no record is at fault.
  bool all_bad() const;
  // The program computes the numbers itself: not what a data set's own code makes of a record.
  bool computes() const { return facts.computed && !facts.computed->of_sample; }
  // The bad number is -1 alone, and the program takes 1 off: `rating - 1`. It was a 0.
  bool one_taken_off() const;
  // "10 of 400 are outside [0, 70), all in column 3".
  std::string outside() const;
  // "`local`", the user's variable that holds the value; "the ids" where none is known.
  std::string users() const;
  // "`local`"; `otherwise` where none is known. in_code: without the marks.
  std::string own(const std::string& otherwise) const;
  std::string in_code(const std::string& otherwise) const;
  bool is_token_table() const;
  // Positions that a text may have in it.
  std::int64_t usable() const;

  // "`fc.5`", or "" when no layer is known.
  std::string layer() const;

  // --- case_size.cpp: is the size too small, or the value wrong? ---

  // The widest range known, of the data set, of all calls, or of this one. The value that the operation
  // ignores is left out of it; where it is the minimum, that is not known.
  std::optional<std::int64_t> seen_min() const;
  std::int64_t seen_max() const;
  // Rows or classes for the largest value that was seen and is not garbage.
  std::int64_t needed() const;
  // The whole data set, or the whole file, was looked at.
  bool all_seen() const;
  // It looks like a size that is too small rather than like a broken value: a small overshoot, or many
  // different values beyond.
  bool likely() const;
  // The whole data set runs from 1 to N, for N places, and 0 is not kept for padding.
  bool counted_from_one() const;
  Need need() const;
  // What the number rests on: " (371 is the highest of 4 labels seen)", ": len(tokenizer) is 215".
  std::string basis(const Need& need) const;
  std::int64_t seen_count() const;
  // "the last ", where they are those of some calls: before these there may have been others.
  std::string_view of_the_last() const;
  std::string seen_where() const;     // "in the whole data set", "in the last 2048 seen", "in this call"
  void set_needed(const Need& need);  // "needs 196" in the line of the layer
  // Of a size that is not known: "as there are classes"; empty where all was seen.
  std::string until() const;
  // "196 outputs"; "as many outputs as there are classes"; "at least 196 outputs" where all was seen.
  std::string how_many(const Need& need, std::string_view of = {}) const;
  // ", by `n_items=len(items)` (main.py:52)": where the program says the layer's size; empty: not known.
  std::string where_made(std::string_view also = {}) const;
  // "196 outputs instead of 195"; "more outputs than 195: as many as there are classes"
  std::string larger(const Need& need, std::string_view of = {}) const;
  // "change `fc.5` to Linear(..., out_features=196)"; an exact number is also put into the finding's layer.
  // Of a layer that a library made: where it is made.
  std::string resize(const Need& need);
  // The row of knobs.def that fits; empty when there is none.
  std::string knob(Situation situation, const Need& need = {}) const;
  // Of what leaves the value out, where it is a mark; a look-up that found nothing gives -1 as well.
  std::string ignore_knob() const;
  // That row gives a size, rather than another way to do it.
  bool knob_counts(Situation situation) const;
  // The argument of the user's own call that makes it large enough, for a library that is known; else
  // resize().
  std::string enlarge(Situation situation, const Need& need);
  // The largest value is the number of places, and no 0 was seen: "if they are counted from 1 (no 0 among 96
  // seen), number ids from 0". No edit: what is counted from 0 and lacks a 0 would be shifted without a word.
  bool maybe_from_one() const;
  std::string from_one(const std::string& name) const;
  // "look at where `bucket` is computed"; where the assignment is known: "look at
  // `bucket = torch.bucketize(age, edges)` (line 12)".
  std::string look_at_computation(const std::string& otherwise) const;
  // That is a statement of the program.
  bool names_statement() const { return facts.computed || facts.assigned; }
  // The same of what is not computed: "look at where `y` is made".
  std::string look_at_making(const std::string& otherwise) const;
  // And of one tensor: "look at where `rate` is computed".
  std::string look_at_value(const std::string& otherwise) const;
  // As many different numbers as there are places, and they are others: they are to be numbered.
  bool write_numbered_here();
  // What is true of every result of that function: "argmax gives 0 to n - 1"; empty for others.
  std::string rule_of_computation() const;
  // What is far beyond is a usual mark for nothing, or a negative number in an unsigned type: no table is to
  // be made as large as that.
  bool no_size() const;
  // Several kinds, so far beyond that they are codes with gaps, as a file has them, and no numbers of rows.
  bool are_codes() const;
  // All that is beyond lies just below the highest number of 8, 16 or 32 bits, where differences below 0 go
  // without a sign; 0: it does not.
  int wrapped_bits() const;
  // So far beyond that the size is not what is wrong.
  bool far_beyond() const;
  // It alone of a whole data set is above all valid numbers, and not by one: it is wrong itself.
  bool is_alone() const;
  // Hardly a record of the whole data set has such a label: it is no class, as a rule. Ids are rare by
  // nature.
  bool is_rare() const;
  // "511 is the only one of the 200 indices of this data set above 359"
  std::string alone_text() const;
  // A whole number that the program divides by the size of a group.
  bool is_of_groups() const;
  // The size is multiplied: "(N_SQUARES + N_HAND) * N_SQUARES". What indexes it is put together of parts, and
  // one of them is beyond its own size: one place more would help nobody. nullptr: it is not.
  const MadeAt* product() const;
  // All there is to say of that. False: it is not so.
  bool write_product();
  // The size is a division that drops its rest, and the number after the last is met.
  bool write_rest();
  // The very end of a range that the program cuts into so many parts.
  bool is_end_of_cut() const;
  // A few ids or indices of one record, which is known, lie beyond the next number: it is looked at, and no
  // size is in question.
  bool of_one_record() const;
  // So many of a whole data set are above the valid numbers, with hardly a gap, that the size is in question
  // before any record is.
  bool many_beyond() const;
  std::string_view which_set() const;  // "this", "the whole"
  // "12 of the 320 ids of the whole data set are above 3"
  std::string many_text() const;
  // "`df['city'].cat.codes` (line 8) has -1 for a missing value"
  std::string of_codes() const;
  // "if there are meant to be more than 195 classes: "
  std::string if_meant() const;
  // The indexed tensor is a part of a larger one, which has room for all of these.
  bool is_cut_short() const;
  std::string cut_short_text() const;
  // What a layer has as many of as its attribute says.
  static std::string_view unit(const Layer& layer);
  // All numbers were counted, and they run from 0 on with hardly a gap, not far beyond the size: then it is
  // the size that is wrong, and else as well a number.
  bool speaks_for_size() const;
  // Sets the size, with where it is made, and the highest number side by side: nothing says which of them is
  // wrong.
  void ask_size(const Need& need);
  // Advises to enlarge, as `text` says, where something speaks for that; else asks.
  void fix_if_meant(Situation situation, const Need& need, const std::string& text);

  // The program counts what the layer is made for (`len(vocab)`): more would not be among that. False where
  // it does not.
  bool write_counted_size();
  // Labels with gaps, among enough to show those in between: numbers of a longer list.
  bool is_moved() const;
  void write_moved();
  bool is_sparse() const;
  void write_sparse();
  // Advises to enlarge: on the condition that it is meant so, unless the program itself says how many
  // there are; a wrong value is in the data as well. `otherwise` is said where neither layer nor library is
  // known. True where it is on a condition: then the other reading has to be said, too.
  bool fix_size(Situation situation, const std::string& otherwise);

  // --- written.cpp ---

  // The one place of the program that writes the bad number, which alone is bad, is a look-up's answer to
  // what is not there; is a constant with a name; is what an array is filled with.
  bool answers_nothing() const;
  bool is_own_mark() const;
  bool is_filling() const;
  // "`lut = np.full(256, -1)` (tiles.py:19)"
  std::string written_at() const;
  // All there is to say where the program's one look-up gave it for what it did not find.
  void write_not_found();
  std::string look_at_filling() const;
  // All there is to say where the program's one place writes a number beyond the range: `OTHER = 99`.
  bool write_own_number();

  // --- case_part.cpp ---

  // Of values above: one data set alone has them. Says so, and what to do there. False: it is not so, or not
  // known.
  bool write_part();
  // The model was trained with labels that have the last class, and evaluates those of another data set.
  bool write_trained();
  // Of numbers above, where the whole data set has just as many different ones as there are places: they
  // want numbers of their own, and no larger table. False: it is not so, or not known.
  bool write_renumber(const std::string& look);
  // The same of the layer: another one beside it has the numbers' name, or just as many places as they need.
  bool write_namesake();
  bool write_other_head();

  // --- ends.cpp ---

  // Counted from 1 by a calendar. False, here as below: nothing says so.
  bool write_calendar();
  // Drawn from a range that holds its end, which is the number of places.
  bool write_end();
  // Below 0 since a narrow type has no room for them.
  bool write_narrow();
  // What the variable was given says that it rounds down: then -1 marks nothing.
  bool rounds_down() const;
  // One line beside others: -1 of what a division rounds down.
  void write_floored();

  // --- back in case.cpp ---

  // What is wrong is a row as a whole: it is named, not its first element.
  void count_rows();

  // The loss has a number that it leaves out.
  bool has_ignore_index() const { return facts.contract->also_arg == "ignore_index"; }

  // The bad number is no sample's own: the collate function fills short rows with it.
  bool is_padding() const { return facts.sample && facts.sample->by == "padding"; }

  // The bad numbers came in between the records and the call, and no source says that the size is wrong.
  bool made_between() const;
  // They were held in a float of 16 bits, which has not all whole numbers of that size.
  bool is_rounded() const { return !facts.rounded.empty(); }
  void write_made_between();

  // Adds "look at sample 1507: print(loader.dataset[1507])" when the sample is known.
  void fix_sample();
  // A folder that is no class has moved the numbers of those behind it; false where there is none.
  bool fix_hidden_class();

  // Memory that was never written, or is no integer: no label or id is that large.
  bool garbage() const;
  void write_garbage();
  void write_raw_number();

  // The value is what a cast makes of NaN and Inf, or the cast was seen.
  bool nan_cast() const;
  void write_nan_cast();
  // What the batch holds is finite: the program itself makes the NaN.
  bool by_arithmetic() const;
  void fix_arithmetic(const std::string& cast);
  void fix_infinite(const std::string& cast);

 private:
  Finding& finding_;
  std::vector<std::string> guesses_;
};

// One per family of causes. They write summary and fix, and may change cause, also and layer.
void diagnose_label(ViolationWriter& w);
// Of labels: this one marks what is not to count, or is the -1 of an unsigned type; the two classes are
// called -1 and 1 (false: a word of it, at most, is said); masks are pictures of two colours.
void write_label_mark(ViolationWriter& w, std::int64_t label);
bool is_wrapped(const ViolationWriter& w, std::int64_t value);
bool is_wrapped_ignore(const ViolationWriter& w);
void write_wrapped_ignore(ViolationWriter& w);
bool write_signed_classes(ViolationWriter& w);
bool two_colours(const ViolationWriter& w);
void write_two_colours(ViolationWriter& w);
// Of labels: every one is a class of the data set; this one is none; short rows are filled with it; a mask
// has numbers on both sides of its classes.
void write_all_named(ViolationWriter& w);
void write_unnamed(ViolationWriter& w);
void write_filled(ViolationWriter& w);  // the program fills in the number of classes
void write_padding(ViolationWriter& w);
void write_resized(ViolationWriter& w);
// Of labels that are places: of a sequence, or, where the program computes them, among the rows of a batch.
bool are_places(const ViolationWriter& w);
void write_places(ViolationWriter& w);
void fix_places_of_batch(ViolationWriter& w);
// Not one is valid: they are of another list.
bool all_beyond(const ViolationWriter& w);
void fix_all_beyond(ViolationWriter& w);
// Of maps, in a program that resizes something: the way in which masks may be.
void fix_resized(ViolationWriter& w);
// Of what is counted from 1: all labels, or those of a part of the data. The caller adds no size.
bool one_based(const ViolationWriter& w);
void write_one_based(ViolationWriter& w);
bool one_based_part(const ViolationWriter& w);
void write_one_based_part(ViolationWriter& w);
// The names in the line of a one_hot say that labels are made one-hot.
bool speaks_of_labels(const ViolationWriter& w);
void diagnose_id(ViolationWriter& w);
// The largest number of an unsigned type alone, far above the others: "; 255 is also what -1 becomes in
// uint8".
std::string of_unsigned(const ViolationWriter& w);
// "; -106 is also what 150 becomes in int8", where the table has a row for that.
std::string of_signed(const ViolationWriter& w);
// Only the newest id of a row is bad, where a model is used: it was chosen among a model's scores.
bool write_pairs(ViolationWriter& w);
bool is_drawn(const ViolationWriter& w);
// "config.type_vocab_size=1 made this table": of a table that is none of tokens.
void fix_setting(ViolationWriter& w);
void fix_drawn(ViolationWriter& w);
bool is_position_table(const ViolationWriter& w);
// "the position table `wpe`"
std::string table_text(const ViolationWriter& w, std::string_view kind);
// A sequence beyond the position table, by whichever operation it is met.
void write_position(ViolationWriter& w);
void diagnose_index(ViolationWriter& w);
void diagnose_loss_input(ViolationWriter& w);
void diagnose_probability(ViolationWriter& w);
void fix_multinomial(ViolationWriter& w);
void write_sampler(ViolationWriter& w);
// By predicate rather than by cause; false when the predicate is none of those.
bool diagnose_counts(ViolationWriter& w);
void write_offsets(ViolationWriter& w);
void write_count(ViolationWriter& w);
void diagnose_finite(ViolationWriter& w);

// Adds what is known of a NaN's origin to the summary, and what to do about it; true when that is enough.
bool explain_nan(ViolationWriter& w);
// Every parameter in reach was looked at, and none is bad.
bool weights_are_finite(const ViolationWriter& w);
// The command that names the layer was among it.
bool nan_watched(const ViolationWriter& w);
bool explain_broken_weights(ViolationWriter& w);  // what was computed of them is no number
// The program does this ("generation", "policy"), or nobody knows what it does.
bool nan_when(const ViolationWriter& w, const char* situation);  // "": nothing tells what the program does
bool nan_made(const ViolationWriter& w);
bool nan_trains(const ViolationWriter& w);
// What is drawn by is weights that the program itself computes: nothing in it speaks of scores or of a
// softmax.
bool are_weights(const ViolationWriter& w);
// "x[3] is NaN": what was cast to an integer; empty when it was not found.
std::string nan_cast_source(const ViolationWriter& w);

}  // namespace trapline::diagnose
