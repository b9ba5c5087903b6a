#include "check/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "diagnose/diagnose.hpp"

namespace trapline::check {
namespace {

using nlohmann::json;

constexpr std::size_t kMostValues = 16;
constexpr std::size_t kMostMissing = 8;

json scalar(const Scalar& value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53U;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (*integer > kExact || *integer < -kExact) return to_text(value);
    return *integer;
  }
  const double number = std::get<double>(value);
  if (!std::isfinite(number)) return to_text(value);
  return number;
}

json scan_facts(const Rule& rule, const Tally& tally) {
  json scan = {{"bad", tally.bad},
               {"total", tally.total},
               {"reason", static_cast<int>(tally.reason)},
               {"is_float", !is_integral(rule.what)},
               {"value", scalar(tally.first->value)}};
  if (tally.min) scan["min"] = scalar(*tally.min);
  if (tally.max) scan["max"] = scalar(*tally.max);
  if (is_integral(rule.what)) {
    scan["lo"] = 0;
    scan["hi"] = rule.limit;
    if (rule.ignore_index) scan["also"] = *rule.ignore_index;
  }
  return scan;
}

json values_facts(const Detail& detail) {
  std::vector<std::pair<Scalar, std::int64_t>> values(detail.values.begin(), detail.values.end());
  std::ranges::stable_sort(values, std::ranges::greater{}, [](const auto& pair) { return pair.second; });
  if (values.size() > kMostValues) values.resize(kMostValues);
  json list = json::array();
  for (const auto& [value, count] : values) list.push_back({scalar(value), count});
  return list;
}

std::optional<json> classes_facts(const Rule& rule, const Tally& tally) {
  const Detail& detail = tally.detail;
  if (rule.what != What::kLabels || detail.seen.empty()) return std::nullopt;
  const auto kinds =
      std::ranges::count(detail.seen, true) + static_cast<std::ptrdiff_t>(detail.values.size());
  json missing = json::array();
  for (std::size_t i = 0; i < detail.seen.size() && missing.size() < kMostMissing; ++i) {
    if (!detail.seen[i]) missing.push_back(i);
  }
  return json{{"seen", kinds}, {"expected", rule.limit}, {"missing", missing}};
}

json layer_facts(const Layer& layer) {
  json out = {{"name", layer.name}, {"type", layer.type}, {"attribute", layer.attribute}, {"certain", true}};
  if (layer.value) out["value"] = *layer.value;
  if (!layer.arguments.empty()) out["arguments"] = layer.arguments;
  return out;
}

std::string_view contract_of(What what) {
  switch (what) {
    case What::kLabels:
      return "check_labels.labels";
    case What::kIds:
      return "check_ids.ids";
    case What::kProbabilities:
      return "check_probs.probs";
    case What::kFinite:
      break;
  }
  return "check_finite.values";
}

json common_facts(const Subject& subject) {
  json facts = {{"kind", "violation"}};
  const bool known = std::ranges::none_of(subject.shape, [](std::int64_t size) { return size < 0; });
  if (known) facts["tensor"] = {{"shape", subject.shape}, {"dtype", subject.dtype}};
  if (!subject.source.empty()) facts["source"] = subject.source;
  if (!subject.name.empty()) facts["column"] = subject.name;
  return facts;
}

std::string called(const Rule& rule, const Subject& subject) {
  if (!subject.name.empty()) return subject.name;
  return rule.what == What::kIds ? "ids" : "labels";
}

std::string element(const std::string& name, const Place& place) {
  return place.index.empty() ? name : fmt::format("{}[{}]", name, fmt::join(place.index, ", "));
}

// The very file, where the subject is several.
Subject in_file(const Subject& subject, const Place& place) {
  Subject inside = subject;
  if (!place.source.empty()) inside.source = place.source;
  return inside;
}

void add_evidence(const Subject& subject, const Place& place, const std::string& text, Finding& finding) {
  const std::string source = in_file(subject, place).source;
  if (source.empty()) return;
  const std::optional<std::int64_t> line = place.line > 0 ? std::optional(place.line) : std::nullopt;
  std::string whole;
  if (place.before > 0 && !place.index.empty()) {
    whole = fmt::format(" (row {} of all files)", place.before + place.index[0]);
  }
  finding.evidence.push_back({source, line, text + whole});
}

void add_evidence(const Rule& rule, const Subject& subject, const Place& place, Finding& finding) {
  std::string name = subject.name.empty() && is_integral(rule.what) ? called(rule, subject) : subject.name;
  if (name.empty()) name = "values";
  add_evidence(subject, place, fmt::format("{} is {}", element(name, place), to_text(place.value)), finding);
}

Finding violation(const Rule& rule, const Subject& subject, const Tally& tally,
                  const std::optional<Range>& range) {
  json facts = common_facts(in_file(subject, *tally.first));
  facts["contract"] = contract_of(rule.what);
  facts["scan"] = scan_facts(rule, tally);
  facts["index"] = tally.first->index;
  facts["values"] = values_facts(tally.detail);
  if (range) {
    facts["seen"] = {{"min", range->min},
                     {"max", range->max},
                     {"count", range->count},
                     {"source", subject.source.empty() ? "calls" : "dataset"}};
  }
  if (auto classes = classes_facts(rule, tally)) facts["classes"] = std::move(*classes);
  if (rule.layer) facts["layer"] = layer_facts(*rule.layer);
  if (!rule.special_ids.empty()) facts["special_ids"] = rule.special_ids;
  if (rule.what == What::kIds && rule.layer) facts["table"] = "token";
  if (rule.weights) facts["table"] = "weight";
  const Result<Finding> made = diagnose_violation(facts);
  Finding finding;
  if (made) {
    finding = *made;
  } else {
    finding.summary = made.error().line();  // a fault of this file; shown rather than lost
  }
  for (const Place& place : tally.detail.places) add_evidence(rule, subject, place, finding);
  if (finding.evidence.empty()) add_evidence(rule, subject, *tally.first, finding);
  return finding;
}

Finding missing_value(const Rule& rule, const Subject& subject, const Tally& tally) {
  Subject named = in_file(subject, tally.missing.first);
  named.name = called(rule, subject);
  json facts = common_facts(named);
  facts["contract"] = "check_integers.values";
  facts["scan"] = {{"bad", tally.missing.count},
                   {"total", tally.total + tally.missing.count + tally.malformed.count},
                   {"value", scalar(tally.missing.first.value)},
                   {"reason", static_cast<int>(Reason::kNan)},
                   {"is_float", true}};
  facts["index"] = tally.missing.first.index;
  const Result<Finding> made = diagnose_violation(facts);
  Finding finding;
  if (made) finding = *made;
  add_evidence(rule, named, tally.missing.first, finding);
  return finding;
}

// Text and fractions where class numbers or ids belong.
Finding no_integer(const Rule& rule, const Subject& subject, const Tally& tally) {
  const Odd& odd = tally.malformed;
  const std::string name = called(rule, subject);
  const std::string source = in_file(subject, odd.first).source;
  const std::int64_t total = tally.total + tally.missing.count + odd.count;
  const bool empty = odd.text.empty();
  const bool fraction = !empty && odd.text.find_first_not_of("0123456789.+-eE") == std::string::npos;
  Finding finding;
  finding.cause = Cause::kDtypeMismatch;
  finding.certainty = Certainty::kProven;
  finding.device_assert = false;
  finding.argument = name;
  finding.element = Element{odd.first.index, std::nullopt, odd.count, total, std::nullopt, std::nullopt};
  finding.valid = Valid{"integers", {}, {}, {}};
  finding.summary = fmt::format("{}: {} is {}, which is no integer: {} of {} value{}",
                                source.empty() ? "check" : source, element(name, odd.first),
                                empty      ? "empty"
                                : fraction ? odd.text
                                           : fmt::format("'{}'", odd.text),
                                odd.count, total, total == 1 ? "" : "s");
  if (empty) {
    finding.fix.emplace_back("drop or fill the rows without a value: pandas: df.dropna(subset=[...])");
  } else if (fraction) {
    finding.fix.emplace_back(
        "class labels and ids are whole numbers: for a number to be predicted use F.mse_loss");
  } else if (rule.what == What::kLabels) {
    finding.fix.emplace_back(
        "number the classes: kinds = sorted(set(labels)); label = kinds.index(label), and keep `kinds`");
  } else {
    finding.fix.emplace_back("turn text into ids with the model's tokenizer: tokenizer(text)[\"input_ids\"]");
  }
  add_evidence(subject, odd.first, fmt::format("{} is '{}'", element(name, odd.first), odd.text), finding);
  return finding;
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
  if (tally.bad > 0 && tally.first) findings.push_back(violation(rule, subject, tally, range));
  if (tally.missing.count > 0) findings.push_back(missing_value(rule, subject, tally));
  if (tally.malformed.count > 0) findings.push_back(no_integer(rule, subject, tally));
  return findings;
}

std::optional<Finding> finding_of(const Rule& rule, const Subject& subject, const Lengths& lengths) {
  if (lengths.too_long == 0 || !rule.positions) return std::nullopt;
  const std::int64_t row = lengths.first.index.empty() ? 0 : lengths.first.index[0];
  json facts = common_facts(in_file(subject, lengths.first));
  facts["contract"] = "check_ids.ids";
  facts["column"] = fmt::format("the last position of row {}", row);
  facts["table"] = "position";
  facts["scan"] = {{"bad", lengths.too_long},
                   {"total", lengths.rows},
                   {"value", lengths.longest - 1},
                   {"max", lengths.longest - 1},
                   {"lo", 0},
                   {"hi", *rule.positions},
                   {"reason", static_cast<int>(Reason::kAbove)}};
  if (rule.position_layer) facts["layer"] = layer_facts(*rule.position_layer);
  const Result<Finding> made = diagnose_violation(facts);
  if (!made) return std::nullopt;
  Finding finding = *made;
  finding.argument = subject.name.empty() ? "ids" : subject.name;
  finding.element->index = {row};
  finding.values.clear();
  add_evidence(subject, lengths.first, fmt::format("row {} is too long", row), finding);
  return finding;
}

}  // namespace trapline::check
