#include <fmt/format.h>

#include <limits>

#include "diagnose/diagnose.hpp"
#include "diagnose/violation/rule_words.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

Valid valid_of(const Violation& facts) {
  const ScanFact& scan = facts.scan;
  Valid valid{valid_words(*facts.contract, scan), {}, {}, {}};
  if (scan.also) valid.also.push_back(static_cast<double>(*scan.also));
  switch (facts.contract->predicate) {
    case Predicate::kUnitInterval:
      valid.min = 0.0;
      valid.max = 1.0;
      break;
    case Predicate::kNonNegative:
    case Predicate::kProbabilityRows:
      valid.min = facts.contract->dtypes == Dtypes::kFloating ? Scalar(0.0) : Scalar(std::int64_t{0});
      break;
    case Predicate::kFiniteToInteger:
    case Predicate::kMaskCount:
      break;
    case Predicate::kCounts:
    case Predicate::kLengths:
      valid.min = std::int64_t{0};
      break;
    default:
      valid.min = scan.lo;
      if (scan.hi != kUnbounded && scan.hi > scan.lo) valid.max = scan.hi - 1;
      break;
  }
  return valid;
}

// A layer that was found by its size alone says nothing of a tensor that is indexed, which may be anything.
bool is_guess(const Violation& facts) {
  const std::string_view op = facts.contract->public_op;
  const bool indexes = op == "gather" || op.starts_with("x[index]") || op.starts_with("index") ||
                       op == "take" || op.starts_with("scatter");
  return indexes && facts.table != "labels" && !facts.layer_certain;
}

// What the facts say as they stand, before any word about them.
Finding start(const Violation& facts) {
  const ScanFact& scan = facts.scan;
  Finding finding;
  finding.cause = facts.contract->cause;
  finding.certainty = Certainty::kProven;
  finding.role = Role::kRoot;
  finding.device_assert = facts.contract->device_assert;
  finding.contained = facts.contained;
  finding.op = facts.contract->public_op;
  finding.argument = facts.column.empty() ? std::string(facts.contract->public_argument) : facts.column;
  finding.element = Element{facts.index, scan.value, scan.bad, scan.total, scan.min, scan.max};
  finding.element->strip = facts.strip;
  finding.element->histogram = facts.histogram;
  // Where the words already name it so, it is no news.
  if (facts.variable && (facts.variable->name != finding.argument || facts.variable->index != facts.index)) {
    finding.element->variable = facts.variable;
  }
  finding.valid = valid_of(facts);
  if (!facts.tensor.dtype.empty()) finding.tensor = facts.tensor;
  finding.origin = facts.origin;
  finding.stack = facts.stack;
  finding.surfaced = facts.surfaced;
  finding.layer = facts.layer;
  if (finding.layer) finding.layer->made = facts.made;
  if (facts.as_nll && finding.op == "cross_entropy") finding.op = "nll_loss";
  finding.sample = facts.sample;
  finding.process = facts.process;
  finding.progress = facts.progress;
  finding.history = facts.history;
  if (facts.contract->op.starts_with("check_")) {  // of data at rest all was seen
    finding.values = facts.values;
    finding.classes = facts.classes;
  }
  if (!facts.contract->device_assert && !facts.contract->remember) {
    finding.evidence.push_back(
        {"guard", std::nullopt,
         fmt::format(
             "on CUDA {} has no device-side assert for this: the fault would stay silent or end in another "
             "error",
             facts.contract->public_op)});
  }
  if (facts.members > 1) {
    finding.evidence.push_back(
        {"guard", std::nullopt,
         fmt::format(
             "vmap puts the tables of its {} models below each other: an id beyond its own is read from the "
             "next one's, without an error, unless it is the last model's",
             facts.members)});
  }
  if (!facts.thread.empty()) {
    finding.evidence.push_back(
        {"guard", std::nullopt,
         fmt::format(
             "checked on the device, by a call of thread {}; the program {}{}", facts.thread,
             facts.contained ? "went on with harmless values until here" : "could not be kept from failing",
             facts.gradients_dropped ? "; the gradients made of them were dropped" : "")});
  }
  return finding;
}

// The data are right: torch_geometric took the attribute for numbers of nodes, by its name.
void write_raised(ViolationWriter& w, const RaisedFact& raised) {
  if (!raised.nodes_of.empty()) {
    w.finding().summary = fmt::format(
        "{}, but there are {} nodes: valid indices are {}; in its own graph it is {}: batching added to `{}` "
        "what is not the number of nodes in `{}` of the graphs before",
        w.opening(), w.hi(), w.range(), raised.value, raised.attribute, raised.nodes_of);
    w.fix(fmt::format(
        "__inc__ of your Data class has to return self.{1}.size(0) for `{0}` (of edges between two "
        "parts both numbers, [[source], [target]])",
        raised.attribute, raised.nodes_of));
    return;
  }
  w.finding().summary = fmt::format(
      "{}, but valid {} are {}; in its own graph it is {}: batching added the nodes of the graphs before to "
      "`{}`",
      w.opening(), w.nouns(), w.range(), raised.value, raised.attribute);
  w.fix(
      fmt::format("if `{}` holds no numbers of nodes, give it a name without `index`: torch_geometric adds "
                  "to each attribute "
                  "that has the word in its name; or let __inc__ of your Data class return 0 for it",
                  raised.attribute));
  w.fix("if it holds numbers of nodes, the table is to have a row for each node of the whole batch");
}

void write_words(ViolationWriter& w) {
  if (w.facts.contract->predicate != Predicate::kOffsets && w.nan_cast()) {
    w.write_nan_cast();
    return;
  }
  if (w.garbage()) {
    w.write_garbage();
    return;
  }
  if (diagnose_counts(w)) return;
  if (w.facts.raised) return write_raised(w, *w.facts.raised);
  switch (w.facts.contract->cause) {
    case Cause::kLabelOutOfRange:
      diagnose_label(w);
      break;
    case Cause::kEmbeddingIndexOutOfRange:
      diagnose_id(w);
      break;
    case Cause::kLossInputOutOfRange:
      diagnose_loss_input(w);
      break;
    case Cause::kInvalidProbability:
      diagnose_probability(w);
      break;
    case Cause::kNonFiniteValue:
      diagnose_finite(w);
      break;
    case Cause::kNanToIndex:
      w.finding().summary =
          fmt::format("{}, which becomes a meaningless integer without an error", w.opening());
      w.fix(
          "drop the row before the cast, or give what is missing a number of its own: the 0 of "
          "torch.nan_to_num(x) is "
          "a number like any other");
      w.fix_sample();
      break;
    default:
      diagnose_index(w);
      break;
  }
  if (const std::string rule = w.rule_of_computation(); !rule.empty()) w.fix_after_first(rule);
}

// A NaN or an infinity, or what a cast or broken weights made of one.
bool is_not_finite(const Finding& finding, const Violation& facts) {
  return finding.cause == Cause::kNanToIndex || facts.scan.reason == Reason::kNan ||
         facts.scan.reason == Reason::kInf || (facts.weights && facts.weights->bad > 0);
}

}  // namespace

Finding finding_of(const Violation& all) {
  Violation facts = all;
  if (is_guess(facts)) facts.layer.reset();
  Finding finding = start(facts);
  ViolationWriter writer(facts, finding);
  write_words(writer);
  writer.settle_guesses();
  if (facts.members > 1)
    finding.summary +=
        fmt::format("; vmap runs {} models as one, the first index is that of the model", facts.members);
  if (facts.watch && is_not_finite(finding, facts)) add_watch(*facts.watch, finding);
  for (const auto& [place, value] : facts.places) {
    add_place(place, fmt::format("{} is {}", element_text(finding.argument, place.index), to_text(value)),
              finding);
  }
  return finding;
}

}  // namespace trapline::diagnose
