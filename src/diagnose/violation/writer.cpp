#include "diagnose/violation/writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "diagnose/frame.hpp"
#include "diagnose/markers.hpp"
#include "diagnose/sample.hpp"

namespace trapline::diagnose {
namespace {

// What x86 makes of NaN and Inf, or that with an index added to it: row * width + column. Memory that was
// never written does not lie so close to it.
bool cast_of_nan(std::int64_t value) {
  constexpr std::int64_t kIndex = std::int64_t{1} << 24;
  return value < kNanAsInt64 + kIndex || (value >= kNanAsInt32 && value < kNanAsInt32 + kIndex);
}

std::string place(const Frame& frame) {
  const std::string where = file_and_line(frame);
  return frame.function.empty() || frame.function.front() == '<'
             ? where
             : fmt::format("`{}` ({})", frame.function, where);
}

}  // namespace

std::string ViolationWriter::op() const {
  if (facts.as_nll && facts.contract->public_op == "cross_entropy") return "nll_loss";
  return std::string(facts.contract->public_op);
}

std::string ViolationWriter::argument() const {
  return facts.column.empty() ? std::string(facts.contract->public_argument) : facts.column;
}

std::string ViolationWriter::element() const {
  std::string text = argument();
  // x[i, j]: which of the index tensors, unless it is the first: index[1] is j.
  if (facts.scan.list_position.value_or(0) > 0) text += fmt::format("[{}]", *facts.scan.list_position);
  if (facts.index.empty()) return text;
  return fmt::format("{}[{}]", text, fmt::join(facts.index, ", "));
}

std::string ViolationWriter::value() const {
  return facts.scan.value ? to_text(*facts.scan.value) : std::string("invalid");
}

std::string ViolationWriter::opening() const {
  std::string text = element();
  // Elsewhere in the user's variable than in the argument, which a library or a line before made of it.
  if (const auto& variable = finding_.element->variable;
      variable && (variable->index != facts.index || facts.scan.list_position.value_or(0) > 0)) {
    text += fmt::format(" ({})", to_text(*variable));
  }
  return fmt::format("{}: {} is {}", facts.source.empty() ? op() : facts.source, text, value());
}

// Of probabilities the upper end is valid itself.
std::string ViolationWriter::range() const {
  return fmt::format("[{}, {}{}", facts.scan.lo, facts.scan.hi, facts.scan.is_float ? ']' : ')');
}

std::int64_t ViolationWriter::integer() const {
  return facts.scan.value && is_integer(*facts.scan.value) ? std::get<std::int64_t>(*facts.scan.value) : 0;
}

bool ViolationWriter::only(const Scalar& wanted) const {
  return facts.scan.value == wanted && std::all_of(facts.values.begin(), facts.values.end(),
                                                   [&](const auto& pair) { return pair.first == wanted; });
}

bool ViolationWriter::has(std::int64_t wanted) const {
  const Scalar scalar = wanted;
  return facts.scan.value == scalar || std::any_of(facts.values.begin(), facts.values.end(),
                                                   [&](const auto& pair) { return pair.first == scalar; });
}

std::size_t ViolationWriter::distinct() const { return std::max<std::size_t>(1, facts.values.size()); }

bool ViolationWriter::both_sides() const {
  const std::optional<std::int64_t>& also = facts.scan.also;  // which is left out
  if (also && (facts.scan.min == Scalar(*also) || facts.scan.max == Scalar(*also))) return false;
  const auto& [min, max] = std::pair(facts.scan.min, facts.scan.max);
  return min && max && is_integer(*min) && is_integer(*max) && std::get<std::int64_t>(*min) < facts.scan.lo &&
         std::get<std::int64_t>(*max) >= hi();
}

std::string ViolationWriter::layer() const {
  return facts.layer ? layer_name(facts.layer->name, '`') : std::string();
}

std::string ViolationWriter::own(const std::string& otherwise) const {
  return facts.variable ? fmt::format("`{}`", facts.variable->name) : otherwise;
}

std::string ViolationWriter::in_code(const std::string& otherwise) const {
  // A variable that holds more than the argument is not what is to be changed as a whole.
  const bool same = facts.variable && facts.variable->index.size() == facts.index.size();
  return same ? facts.variable->name : otherwise;
}

bool ViolationWriter::one_taken_off() const {
  if (integer() != -1 || !only(-1) || !facts.computed) return false;
  const std::string& text = facts.computed->text;
  for (auto at = text.find("- 1"); at != std::string::npos; at = text.find("- 1", at + 1)) {
    const char next = at + 3 < text.size() ? text[at + 3] : ' ';
    if (std::isdigit(static_cast<unsigned char>(next)) == 0 && next != '.' && next != '_') return true;
  }
  return false;
}

bool ViolationWriter::all_bad() const {
  constexpr std::int64_t kSeveral = 8;
  return facts.scan.bad == facts.scan.total && facts.scan.total >= kSeveral;
}

std::string ViolationWriter::outside() const {
  if (is_alone()) return alone_text();
  const std::string column =
      facts.in_column ? fmt::format(", all in column {}", *facts.in_column) : std::string();
  return fmt::format("{} of {}{} {} outside {}{}", facts.scan.bad, facts.scan.total,
                     facts.repeated ? " that are made of it" : "", facts.scan.bad == 1 ? "is" : "are",
                     range(), column);
}

std::string ViolationWriter::users() const { return own("the " + nouns()); }

bool ViolationWriter::is_token_table() const {
  if (!facts.table.empty()) return facts.table == "token";
  if (!facts.layer) return false;
  std::string name = facts.layer->name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (name.find("token_type") != std::string::npos) return false;
  const auto words = {"wte", "token", "tok_", "word", "vocab"};
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

std::int64_t ViolationWriter::usable() const {
  const std::int64_t rows = facts.position ? facts.position->usable() : hi();
  return rows > facts.virtual_tokens ? rows - facts.virtual_tokens : rows;
}

void ViolationWriter::count_rows() {
  if (!finding_.element || facts.tensor.shape.size() < 2 || finding_.element->index.size() < 2) return;
  finding_.element->index.pop_back();
  finding_.element->value.reset();
  finding_.element->total = facts.scan.total / facts.tensor.shape.back();
  if (auto& variable = finding_.element->variable; variable && !variable->index.empty())
    variable->index.pop_back();
}

void ViolationWriter::fix_sample() {
  if (!facts.sample || !finding_.sample || !facts.masked.empty() || is_rounded()) return;
  const std::string advice = look_at(*facts.sample);
  const bool said = std::find(finding_.fix.begin(), finding_.fix.end(), advice) != finding_.fix.end();
  if (!advice.empty() && !said) fix(advice);
}

bool ViolationWriter::garbage() const {
  if (facts.scan.is_float || !facts.scan.value || !is_integer(*facts.scan.value)) return false;
  return integer() >= kAbsurdValue || integer() <= -kAbsurdValue;
}

// A record holds it, or the program computes it: no memory that was never written.
void ViolationWriter::write_raw_number() {
  finding_.summary =
      fmt::format("{}, far beyond {}: a raw number (a hash, a time, a key) that was not made one of {} {}",
                  opening(), range(), hi(), is_class() ? "classes" : "rows");
  fix(fmt::format("{}: {}", look_at_computation("the " + nouns()), outside()));
  // Beside valid ones they are another field of a record, and no key that all have.
  if (2 * facts.scan.bad >= facts.scan.total)
    fix("raw numbers are numbered first, from 0, by one table for all of the data: number = {key: i for i, "
        "key "
        "in "
        "enumerate(sorted(set(keys)))}; a hash is taken modulo the number of rows");
  fix_sample();
}

void ViolationWriter::write_garbage() {
  if (facts.computed || facts.assigned || (facts.sample && facts.sample->by.empty() && !facts.sample->likely))
    return write_raw_number();
  finding_.summary = fmt::format(
      "{}, which is not a plausible {}: memory that was never written or is of another dtype, or a "
      "raw number (a hash, a time, a key)",
      opening(), noun());
  const std::int64_t high = integer() >> 32, low = integer() & 0xFFFFFFFF;
  constexpr std::int64_t kSmall = 1 << 24;
  if (high > 0 && high < kSmall && low > 0 && low < kSmall) {
    fix(fmt::format(
        "the value is the two int32 numbers {} and {} read as one int64: give the buffer its own dtype "
        "(np.frombuffer(..., dtype=np.int32)) and call .long() on the tensor",
        low, high));
  }
  fix(fmt::format(
      "find where `{}` is allocated: torch.empty(...) and np.empty(...) hold garbage until written; use "
      "torch.zeros(...)",
      argument()));
  fix("if it comes from torch.from_numpy, from_blob or shared memory, keep the owner of the memory alive, or "
      "clone() "
      "the tensor");
  fix("if a custom CUDA or C++ kernel wrote it, check that kernel: compute-sanitizer names the write");
}

std::string ViolationWriter::nouns() const { return noun() == "index" ? "indices" : noun() + "s"; }

std::string ViolationWriter::noun() const {
  if (facts.contract->cause == Cause::kLabelOutOfRange || facts.table == "labels")
    return op() == "one_hot" && !speaks_of_labels(*this) ? "value" : "label";
  return facts.contract->cause == Cause::kEmbeddingIndexOutOfRange ? "id" : "index";
}

bool ViolationWriter::nan_cast() const {
  if (facts.scan.is_float) return false;
  if (facts.nan_cast) return true;
  return cast_of_nan(integer());
}

bool ViolationWriter::of_broken_sample() const {
  return facts.sample && (facts.sample->by == "rows" || facts.sample->by == "nan");
}

bool ViolationWriter::of_nan() const {
  return of_broken_sample() || (facts.nan && facts.nan->input && !nan_cast());
}

std::string ViolationWriter::broken() const {
  if (facts.nan && facts.nan->input) return to_text(*facts.nan->input) + " is NaN";
  return "that sample has NaN or Inf";
}

// Its row of the batch alone is bad and finite as it was loaded, or all that the batch holds is finite.
bool ViolationWriter::by_arithmetic() const {
  if (!facts.sample) return false;
  const bool seen = facts.nan && facts.nan->input && !facts.batch_is_finite;  // what was cast was so before
  return (facts.sample->by == "row" && !seen) ||
         (facts.batch_is_finite && (facts.sample->by == "hand" || facts.sample->by == "place"));
}

void ViolationWriter::fix_arithmetic(const std::string& cast) {
  const bool row = facts.sample && facts.sample->by == "row";
  fix(
      fmt::format("what the batch holds is finite: arithmetic before {} makes NaN or Inf of {}: 0/0 (a range "
                  "or a standard deviation of 0), the root or logarithm of a negative number, acos or asin "
                  "beyond 1 (by rounding){}",
                  cast, row ? "that row" : "it", row ? "" : "; or a missing value goes in beside the batch"));
  fix("find where the NaN begins: assert torch.isfinite(x).all() after each step before the cast");
  fix_sample();
}

// No missing value: those are NaN. The rows are good, and only this place of them has no number.
void ViolationWriter::fix_infinite(const std::string& cast) {
  if (facts.nan && facts.nan->input) {  // what was cast is known, and whether something made it is not
    fix(fmt::format(
        "{} goes into the cast in {}, and stands in `{}` already: give such elements a number of their "
        "own before: torch.where(x.isfinite(), x, other)",
        facts.nan_cast->value, cast, facts.nan->input->name));
    return fix_sample();
  }
  fix(fmt::format(
      "{} goes into the cast in {}: see what gives it (the log of 0, a division by 0, a distance where "
      "there is no way, the highest of nothing), and give such elements a number of their own before the "
      "cast: torch.where(torch.isfinite(x), x, other)",
      facts.nan_cast->value, cast));
  fix("find where it begins: assert torch.isfinite(x).all() after each step before the cast");
  fix_sample();
}

void ViolationWriter::write_nan_cast() {
  finding_.also.insert(finding_.also.begin(), finding_.cause);
  finding_.cause = Cause::kNanToIndex;
  const bool label = noun() == "label";  // one that is not known must not be made up
  const char* thing = label ? "label" : "value";
  const char* what_to_do = label ? "see why it has none, and leave out what really has none, before"
                                 : "give it a number that stands for it alone, where it is missing by "
                                   "nature, or leave its row out, before";
  if (facts.nan_cast) {
    const Frame& cast = facts.nan_cast->frame;
    finding_.summary = fmt::format("{}: NaN or Inf was cast to an integer in {}", opening(), place(cast));
    finding_.surfaced = finding_.origin;
    finding_.origin = cast;
    if (explain_broken_weights(*this)) return;
    if (const std::string source = nan_cast_source(*this); !source.empty()) finding_.summary += "; " + source;
    const std::string code = stripped(cast.code);
    const std::string where = code.empty() ? place(cast) : fmt::format("`{}`", code);
    if (by_arithmetic() && !label) return fix_arithmetic("the cast in " + where);
    if (!label && of_broken_sample()) {
      fix(fmt::format("that sample has NaN or Inf already: mend it, or leave it out, before the cast in {}",
                      where));
      return fix_sample();
    }
    if (!label && facts.nan_cast->value.ends_with("inf")) return fix_infinite(where);
    if (label) {
      fix(fmt::format("a missing label goes into the cast in {}: {}", where, what_to_do));
    } else {
      fix(fmt::format(
          "NaN goes into the cast in {}: 0/0, the log or root of a negative number, {}or one that is missing "
          "in the data",
          where,
          facts.pandas ? "a value that .map() or a merge has no entry for, or beyond the edges of pd.cut(), "
                       : ""));
    }
  } else {
    const bool computed = !is_cast_of_nan(integer());
    finding_.summary = fmt::format("{}, which is what a cast to an integer makes of NaN or Inf{}", opening(),
                                   computed ? ", with something added to it" : "");
    if (explain_broken_weights(*this)) return;
    if (const std::string source = nan_cast_source(*this); !source.empty()) finding_.summary += "; " + source;
    if (by_arithmetic() && !label && !facts.numpy_cast) {
      return fix_arithmetic(
          fmt::format("the cast (.long(), .int(), .to(torch.int64)) that makes `{}`", argument()));
    }
    if (facts.numpy_cast) {
      const std::string code = stripped(facts.numpy_cast->code);
      fix(fmt::format(
          "NumPy warned of an invalid value in the cast in {}{}: if a missing {} goes into it, {}",
          place(*facts.numpy_cast), code.empty() ? "" : fmt::format(", `{}`", code), thing, what_to_do));
    } else {
      fix(fmt::format(
          "find the cast (.long(), .int(), .to(torch.int64), .astype(int)) that makes `{}`: NaN or "
          "Inf goes into it, of 0/0 or log(0); or a missing {}: {}",
          argument(), thing, what_to_do));
    }
  }
  if (label && facts.contract->also_arg == "ignore_index") {
    fix(fmt::format(
        "only where a record that really has no label is to stay: labels = torch.nan_to_num(labels, nan={}) "
        "before the cast, which the loss leaves out",
        facts.scan.also.value_or(-100)));
  }
  const std::string back =
      facts.nan && facts.nan->input ? fmt::format(", backwards from `{}`", facts.nan->input->name) : "";
  fix(fmt::format(
      "find where the NaN or Inf begins{}: assert torch.isfinite(x).all() (np.isfinite of an array) before "
      "the cast{}",
      back, facts.pandas ? "; in pandas: df.isna().any()" : ""));
  fix_sample();
}

}  // namespace trapline::diagnose
