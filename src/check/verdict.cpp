#include "check/verdict.hpp"

#include <algorithm>
#include <string_view>

#include "check/weight_names.hpp"
#include "diagnose/diagnose.hpp"

namespace trapline::check {
namespace {

constexpr std::size_t kMaxValues = 16;
constexpr std::size_t kMaxMissing = 8;

diagnose::ScanFact scan_facts(const Rule& rule, const Tally& tally) {
  diagnose::ScanFact scan;
  scan.bad = tally.bad;
  scan.total = tally.total;
  scan.reason = tally.reason;
  scan.is_float = !is_integral(rule.kind);
  scan.value = tally.first->value;
  scan.min = tally.min;
  scan.max = tally.max;
  if (is_integral(rule.kind)) {
    scan.hi = rule.limit;
    scan.also = rule.ignore_index;
  }
  return scan;
}

std::vector<std::pair<Scalar, std::int64_t>> values_facts(const Detail& detail) {
  std::vector<std::pair<Scalar, std::int64_t>> values(detail.values.begin(), detail.values.end());
  std::ranges::stable_sort(values, std::ranges::greater{}, [](const auto& pair) { return pair.second; });
  if (values.size() > kMaxValues) values.resize(kMaxValues);
  return values;
}

std::optional<Classes> classes_facts(const Rule& rule, const Tally& tally) {
  const Detail& detail = tally.detail;
  if (rule.kind != RuleKind::kLabels || detail.seen.empty()) return std::nullopt;
  const auto kinds =
      std::ranges::count(detail.seen, true) + static_cast<std::ptrdiff_t>(detail.values.size());
  Classes classes{kinds, rule.limit, {}};
  for (std::size_t i = 0; i < detail.seen.size() && classes.missing.size() < kMaxMissing; ++i) {
    if (!detail.seen[i]) classes.missing.push_back(static_cast<std::int64_t>(i));
  }
  return classes;
}

std::string_view contract_of(RuleKind kind) {
  switch (kind) {
    case RuleKind::kLabels:
      return "check_labels.labels";
    case RuleKind::kIds:
      return "check_ids.ids";
    case RuleKind::kProbabilities:
      return "check_probs.probs";
    case RuleKind::kFinite:
      break;
  }
  return "check_finite.values";
}

// Empty where a size is not known.
TensorInfo tensor_of(const Subject& subject) {
  const bool known = std::ranges::none_of(subject.shape, [](std::int64_t size) { return size < 0; });
  return known ? TensorInfo{subject.shape, subject.dtype, {}} : TensorInfo{};
}

// What all facts about the subject have; the contract is one of the table.
diagnose::Violation common_facts(const Subject& subject, std::string_view contract) {
  diagnose::Violation facts;
  facts.contract = find_contract(contract);
  facts.tensor = tensor_of(subject);
  facts.source = subject.source;
  facts.column = subject.name;
  return facts;
}

std::string called(const Rule& rule, const Subject& subject) {
  if (!subject.name.empty()) return subject.name;
  if (!is_integral(rule.kind)) return "values";
  return rule.kind == RuleKind::kIds ? "ids" : "labels";
}

// The very file, where the subject is several.
Subject in_file(const Subject& subject, const Place& place) {
  Subject inside = subject;
  if (!place.source.empty()) inside.source = place.source;
  return inside;
}

diagnose::RecordPlace place_fact(const Subject& subject, const Place& place) {
  return {in_file(subject, place).source, place.line, place.index, place.before};
}

void add_named(std::span<const inputs::ClassName> classes, diagnose::Violation& facts) {
  if (classes.empty()) return;
  facts.named_classes = classes.size();
  facts.highest_class = std::ranges::max(classes, {}, &inputs::ClassName::id).id;
  facts.value_is_named = !facts.values.empty() && std::ranges::all_of(facts.values, [&](const auto& value) {
    const auto* number = std::get_if<std::int64_t>(&value.first);
    return number != nullptr && std::ranges::find(classes, *number, &inputs::ClassName::id) != classes.end();
  });
}

Finding violation(const Rule& rule, const Subject& subject, const Tally& tally,
                  const std::optional<Range>& range) {
  diagnose::Violation facts = common_facts(in_file(subject, *tally.first), contract_of(rule.kind));
  facts.scan = scan_facts(rule, tally);
  facts.index = tally.first->index;
  facts.values = values_facts(tally.detail);
  if (range) {
    facts.seen = diagnose::SeenFact{range->min, range->max, range->count, !subject.source.empty()};
  }
  facts.classes = classes_facts(rule, tally);
  if (rule.kind == RuleKind::kLabels) add_named(subject.classes, facts);
  facts.layer = rule.layer;
  facts.special_ids = rule.special_ids;
  if (rule.kind == RuleKind::kIds && rule.layer) facts.table = "token";
  if (rule.kind == RuleKind::kFinite && !subject.records) facts.table = kept_as(subject.name);
  if (rule.weights) facts.table = "weight";
  facts.annotations = subject.annotations;
  if (!facts.annotations.empty()) facts.scan.also.reset();
  const std::vector<Place>& places = tally.detail.places;
  for (const Place& place : places.empty() ? std::vector{*tally.first} : places) {
    facts.places.emplace_back(place_fact(subject, place), place.value);
  }
  return diagnose::finding_of(facts);
}

// NaN and Inf in an array; a value that a table or a record does not have.
Finding missing_value(const Rule& rule, const Subject& subject, const Tally& tally) {
  const std::int64_t total = tally.total + tally.missing.count + tally.malformed.count;
  if (tally.missing.absent) {
    diagnose::MissingValues facts;
    facts.column = called(rule, subject);
    facts.numbers = !is_integral(rule.kind);
    facts.first = place_fact(subject, tally.missing.first);
    facts.text = tally.missing.text;
    facts.bad = tally.missing.count;
    facts.total = total;
    return diagnose::finding_of(facts);
  }
  Subject named = in_file(subject, tally.missing.first);
  named.name = called(rule, subject);
  diagnose::Violation facts = common_facts(named, "check_integers.values");
  facts.scan.bad = tally.missing.count;
  facts.scan.total = total;
  facts.scan.value = tally.missing.first.value;
  facts.scan.reason = Reason::kNan;
  facts.scan.is_float = true;
  facts.index = tally.missing.first.index;
  facts.places = {{place_fact(subject, tally.missing.first), tally.missing.first.value}};
  return diagnose::finding_of(facts);
}

// Text and fractions where numbers belong.
Finding no_integer(const Rule& rule, const Subject& subject, const Tally& tally) {
  const InvalidValues& odd = tally.malformed;
  diagnose::NotIntegers facts;
  facts.column = called(rule, subject);
  facts.labels = rule.kind == RuleKind::kLabels;
  facts.numbers = !is_integral(rule.kind);
  facts.first = place_fact(subject, odd.first);
  facts.text = odd.text;
  facts.bad = odd.count;
  facts.total = tally.total + tally.missing.count + odd.count;
  return diagnose::finding_of(facts);
}

}  // namespace

void Range::add(const Tally& tally, const Rule& rule) {
  // A column that was good was not looked at closely: whether the ignored value is its minimum is not known.
  std::optional<Scalar> low = tally.detailed ? tally.kept_min : tally.min;
  const std::optional<Scalar>& high = tally.detailed ? tally.kept_max : tally.max;
  if (!low || !high || !is_integer(*low) || !is_integer(*high)) return;
  if (!tally.detailed && rule.ignore_index && std::get<std::int64_t>(*low) == *rule.ignore_index) {
    low = std::int64_t{0};
  }
  const std::int64_t from = std::get<std::int64_t>(*low);
  const std::int64_t to = std::get<std::int64_t>(*high);
  min = count == 0 ? from : std::min(min, from);
  max = count == 0 ? to : std::max(max, to);
  count += tally.detailed ? tally.kept : tally.total;
}

bool Lengths::add(std::int64_t row, std::int64_t line, std::int64_t length, std::int64_t most) {
  ++rows;
  longest = std::max(longest, length);
  if (length <= most || too_long++ > 0) return false;
  first = {{row}, line};
  return true;
}

void Lengths::merge(const Lengths& later) {
  if (too_long == 0 && later.too_long > 0) {
    first = later.first;
  }
  rows += later.rows;
  too_long += later.too_long;
  longest = std::max(longest, later.longest);
}

std::vector<Finding> findings_of(const Rule& rule, const Subject& subject, const Tally& tally,
                                 const std::optional<Range>& range) {
  std::vector<Finding> findings;
  // Where many values are fractions or text, the column is no labels or ids at all: how many classes the
  // others would need is no advice.
  const bool other_kind = is_integral(rule.kind) && tally.malformed.count > tally.total;
  if (other_kind) findings.push_back(no_integer(rule, subject, tally));
  if (tally.bad > 0 && tally.first && !other_kind) findings.push_back(violation(rule, subject, tally, range));
  if (tally.missing.count > 0 && !rule.missing_is_fine)
    findings.push_back(missing_value(rule, subject, tally));
  if (tally.malformed.count > 0 && !other_kind) findings.push_back(no_integer(rule, subject, tally));
  return findings;
}

std::optional<Finding> finding_of(const Rule& rule, const Subject& subject, const Lengths& lengths) {
  if (lengths.too_long == 0 || !rule.positions) return std::nullopt;
  diagnose::LongRows facts;
  facts.column = subject.name.empty() ? "ids" : subject.name;
  facts.tensor = tensor_of(subject);
  facts.first = place_fact(subject, lengths.first);
  facts.bad = lengths.too_long;
  facts.total = lengths.rows;
  facts.longest = lengths.longest;
  facts.positions = *rule.positions;
  facts.layer = rule.position_layer;
  return diagnose::finding_of(facts);
}

}  // namespace trapline::check
