// Facts of kind "violation".
#include <algorithm>

#include "diagnose/json/parts.hpp"
#include "jsonio/access.hpp"
#include "jsonio/scalar.hpp"

namespace trapline::diagnose {
namespace {

using jsonio::boolean;
using jsonio::each;
using jsonio::kMaxItems;
using jsonio::member;
using jsonio::object_member;
using jsonio::text;
using jsonio::texts;
using nlohmann::json;

// Here numbers may come as text, and Python's bool is one of them.
std::optional<Scalar> scalar(const json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return Scalar(std::int64_t{value->get<bool>() ? 1 : 0});
  if (value->is_number_unsigned() && !jsonio::integer(*value)) return std::nullopt;  // no double can hold it
  return jsonio::to_scalar(*value);
}

std::optional<std::int64_t> integer(const json* value) {
  const auto number = scalar(value);
  return number && is_integer(*number) ? std::optional(std::get<std::int64_t>(*number)) : std::nullopt;
}

std::optional<std::int64_t> integer(const json& object, const char* name) {
  return integer(member(object, name));
}

std::optional<double> real(const json& object, const char* name) {
  const auto number = scalar(member(object, name));
  return number ? std::optional(as_double(*number)) : std::nullopt;
}

std::vector<std::int64_t> integers(const json& object, const char* name) {
  std::vector<std::int64_t> list;
  const json* values = member(object, name);
  if (values == nullptr || !values->is_array()) return list;
  for (const json& value : *values) {
    const auto number = integer(&value);
    if (!number || list.size() == kMaxItems) return {};
    list.push_back(*number);
  }
  return list;
}

TensorInfo tensor(const json& object) {
  return {integers(object, "shape"), text(object, "dtype"), text(object, "device")};
}

ScanFact read_scan(const json& object) {
  ScanFact scan;
  scan.bad = integer(object, "bad").value_or(0);
  scan.total = integer(object, "total").value_or(0);
  scan.first = integer(object, "first").value_or(-1);
  scan.value = scalar(member(object, "value"));
  scan.min = scalar(member(object, "min"));
  scan.max = scalar(member(object, "max"));
  scan.lo = integer(object, "lo").value_or(0);
  scan.hi = integer(object, "hi").value_or(0);
  scan.also = integer(object, "also");
  scan.list_position = integer(object, "list_position");
  if (scan.list_position && *scan.list_position < 0) scan.list_position.reset();
  const auto reason = integer(object, "reason").value_or(0);
  if (reason >= 0 && reason <= static_cast<std::int64_t>(Reason::kTooFew)) {
    scan.reason = static_cast<Reason>(reason);
  }
  scan.is_float = integer(object, "is_float").value_or(0) != 0;
  return scan;
}

void read_arguments(const json& object, Violation& facts) {
  const json* args = object_member(object, "args");
  if (args == nullptr) return;
  for (const auto& [name, value] : args->items()) {
    if (facts.args.size() == kMaxItems) return;
    ArgumentFact argument;
    argument.integer = integer(&value);
    if (value.is_object()) argument.tensor = tensor(value);
    if (argument.integer || argument.tensor) facts.args.emplace(name, std::move(argument));
  }
}

void read_made(const json& object, Violation& facts) {
  each(object, "made", [&](const json& value) {
    MadeAt at{text(value, "text"), text(value, "file"), integer(value, "line").value_or(0),
              boolean(value, "whole").value_or(false), boolean(value, "computed").value_or(false)};
    if (const json* read = object_member(value, "read")) {
      at.read_file = text(*read, "file");
      at.read_line = integer(*read, "line").value_or(0);
    }
    if (!at.text.empty() && !at.file.empty()) facts.made.push_back(at);
  });
  if (const json* passed = object_member(object, "passed_as"))
    facts.passed_as =
        PassedFact{text(*passed, "name"), text(*passed, "file"), integer(*passed, "line").value_or(0)};
  facts.drawn = boolean(object, "drawn").value_or(false);
  facts.scores = boolean(object, "scores").value_or(true);
  facts.tokenizes = boolean(object, "tokenizes").value_or(true);
  facts.resizes = boolean(object, "resizes").value_or(true);
  facts.greys = boolean(object, "greys").value_or(false);
  facts.pandas = boolean(object, "pandas").value_or(true);
  facts.as_nll = boolean(object, "as_nll").value_or(false);
}

void read_layer(const json& object, Violation& facts) {
  const json* layer = object_member(object, "layer");
  if (layer == nullptr) return;
  facts.layer = Layer{text(*layer, "name"),     text(*layer, "type"), text(*layer, "attribute"),
                      integer(*layer, "value"), std::nullopt,         text(*layer, "arguments")};
  facts.layer_certain = boolean(*layer, "certain").value_or(true);
  if (const json* siblings = object_member(*layer, "siblings"))
    facts.siblings =
        SiblingsFact{integer(*siblings, "count").value_or(0), integer(*siblings, "rows").value_or(0)};
  if (const json* partner = object_member(*layer, "partner"); partner != nullptr)
    facts.partner = NamesakeFact{text(*partner, "name"), integer(*partner, "rows").value_or(0)};
}

std::optional<NamesakeFact> read_namesake(const json& object, const char* key) {
  const json* other = object_member(object, key);
  const auto places = other == nullptr ? std::nullopt : integer(*other, "places");
  if (!places || *places <= 0 || text(*other, "name").empty()) return std::nullopt;
  return NamesakeFact{text(*other, "name"), *places};
}

void read_places(const json& object, Violation& facts) {
  facts.origin = read_origin(object);
  facts.surfaced = read_frame(member(object, "surfaced"));
  facts.stack = read_stack(object);
  read_layer(object, facts);
  if (const json* cast = object_member(object, "nan_cast")) {
    if (auto place = read_frame(member(*cast, "frame"))) {
      facts.nan_cast =
          NanCastFact{std::move(*place), integer(*cast, "bad").value_or(0), text(*cast, "value")};
    }
  }
  facts.namesake = read_namesake(object, "namesake");
  facts.other_head = read_namesake(object, "other_head");
  if (const json* trained = object_member(object, "trained")) {
    const auto max = integer(*trained, "max"), count = integer(*trained, "count");
    if (max && count) facts.trained = TrainedFact{*max, *count};
  }
  if (const json* other = object_member(object, "fits")) {
    facts.fits = FitsFact{text(*other, "name"), integers(*other, "shape")};
    if (facts.fits->shape.empty()) facts.fits.reset();
  }
  if (const json* made = object_member(object, "computed"); made != nullptr && !text(*made, "text").empty()) {
    facts.computed =
        ComputedFact{text(*made, "name"), text(*made, "text"),     integer(*made, "line").value_or(0),
                     text(*made, "by"),   integer(*made, "edges"), text(*made, "file")};
    facts.computed->before = real(*made, "before");
    facts.computed->of_sample = boolean(*made, "of_sample").value_or(false);
    each(*made, "parts", [&](const json& part) {
      auto variable = read_variable(part);
      const json* held = member(part, "value");
      const auto number = held == nullptr ? std::nullopt : jsonio::to_scalar(*held);
      if (variable && number) facts.computed->parts.emplace_back(std::move(*variable), *number);
    });
    const json* source = object_member(*made, "source");
    const auto value = source == nullptr ? std::nullopt : real(*source, "value");
    if (value) {
      facts.computed->source = read_variable(*made, "source");
      facts.computed->source_value = *value;
      facts.computed->source_text = text(*source, "text");
      facts.computed->source_line = integer(*source, "line").value_or(0);
    }
  }
  if (const json* codes = object_member(object, "codes"); codes != nullptr && !text(*codes, "text").empty()) {
    facts.codes = CodesFact{text(*codes, "text"), integer(*codes, "line").value_or(0),
                            text(*codes, "of") != "unknown", text(*codes, "of") == "edges",
                            text(*codes, "of") == "unknown" || text(*codes, "of") == "either"};
  }
  if (const json* variable = object_member(object, "variable")) {
    facts.rounded = text(*variable, "rounded");
    facts.exact = integer(*variable, "exact").value_or(0);
    facts.repeated = boolean(*variable, "repeated").value_or(false);
  }
  facts.padded_to = integer(object, "padded_to").value_or(0);
  facts.two_colours = boolean(object, "two_colours").value_or(false);
  facts.sums_to_one = boolean(object, "sums_to_one").value_or(false);
  facts.as_long = boolean(object, "as_long").value_or(false);
  facts.exchanged = boolean(object, "exchanged").value_or(false);
  facts.exchanged_index = boolean(object, "exchanged_index").value_or(false);
  facts.narrow = text(object, "narrow");
  facts.ids_as_long = text(object, "ids_as_long");
  facts.categories = boolean(object, "categories").value_or(false);
  facts.pretrained = boolean(object, "pretrained").value_or(false);
  if (const json* at = object_member(object, "end"); at != nullptr && !text(*at, "text").empty())
    facts.end = EndFact{text(*at, "text"), text(*at, "file"), integers(*at, "lines")};
  if (const json* at = object_member(object, "calendar"))
    facts.calendar =
        CalendarFact{MadeAt{text(*at, "text"), text(*at, "file"), integer(*at, "line").value_or(0)},
                     integer(*at, "last").value_or(0), integer(*at, "by").value_or(1)};
  if (const json* at = object_member(object, "floored"))
    facts.floored = MadeAt{text(*at, "text"), text(*at, "file"), integer(*at, "line").value_or(0)};
  if (const json* filled = object_member(object, "filled"))
    facts.filled = MadeAt{text(*filled, "text"), text(*filled, "file"), integer(*filled, "line").value_or(0)};
  if (const json* written = object_member(object, "written"))
    facts.written =
        WrittenFact{{text(*written, "text"), text(*written, "file"), integer(*written, "line").value_or(0)},
                    text(*written, "of")};
  if (const json* taken = object_member(object, "taken_off")) {
    facts.taken_off = MadeAt{text(*taken, "text"), text(*taken, "file"), integer(*taken, "line").value_or(0)};
    facts.taken_number = integer(*taken, "number").value_or(0);
  }
  if (const json* less = object_member(object, "less_one"))
    facts.less_one = MadeAt{text(*less, "text"), text(*less, "file"), integer(*less, "line").value_or(0)};
  facts.masked = text(object, "masked");
  facts.numpy_cast = read_frame(member(object, "numpy_cast"));
  facts.no_grad = boolean(object, "no_grad").value_or(false);
  facts.members = std::min(integer(object, "members").value_or(0), std::int64_t{1} << 20);
  facts.newest = boolean(object, "newest").value_or(false);
  facts.batch_is_finite = boolean(object, "batch_is_finite").value_or(false);
  facts.watch = read_watch(object);
  facts.nan = read_nan(object);
  facts.weights = read_weights(object);
  facts.sample = read_sample(object);
  facts.process = read_process(object);
  facts.progress = read_progress(object);
}

std::optional<AssignedFact> read_assigned(const json& object, const char* member) {
  const json* at = object_member(object, member);
  if (at == nullptr || text(*at, "text").empty()) return std::nullopt;
  return AssignedFact{text(*at, "name"),
                      {text(*at, "text"), text(*at, "file"), integer(*at, "line").value_or(0)},
                      boolean(*at, "entered").value_or(false)};
}

std::optional<RangedFact> read_ranged(const json& object) {
  const json* ranged = object_member(object, "ranged");
  if (ranged == nullptr) return std::nullopt;
  RangedFact fact{text(*ranged, "name"), integers(*ranged, "shape"), 0,
                  MadeAt{text(*ranged, "text"), text(*ranged, "file"), integer(*ranged, "line").value_or(0)},
                  boolean(*ranged, "batch").value_or(false)};
  const std::int64_t dim = integer(*ranged, "dim").value_or(-1);
  if (fact.name.empty() || dim < 0 || static_cast<std::size_t>(dim) >= fact.shape.size()) return std::nullopt;
  fact.dim = static_cast<std::size_t>(dim);
  return fact;
}

// What tells where the user can act.
void read_advice(const json& object, Violation& facts) {
  if (const json* counted = object_member(object, "counted")) {
    const auto count = integer(*counted, "count");
    if (count && *count > 0)
      facts.counted = CountedFact{*count, text(*counted, "of"), text(*counted, "hidden")};
  }
  if (const json* raised = object_member(object, "raised")) {
    const auto value = integer(*raised, "value");
    if (value && !text(*raised, "attribute").empty())
      facts.raised = RaisedFact{text(*raised, "attribute"), *value, text(*raised, "nodes_of")};
  }
  facts.position = read_position(object);
  if (const json* setting = object_member(object, "setting")) {
    facts.setting = SettingFact{text(*setting, "name"), integer(*setting, "value").value_or(0)};
    facts.setting->fresh = boolean(*setting, "fresh").value_or(false);
    if (const json* other = object_member(*setting, "other")) {
      facts.setting->other = text(*other, "name");
      facts.setting->other_value = integer(*other, "value").value_or(0);
    }
    if (const json* made = object_member(*setting, "made"))
      facts.setting->made =
          MadeAt{text(*made, "text"), text(*made, "file"), integer(*made, "line").value_or(0)};
    if (facts.setting->name.empty()) facts.setting.reset();
  }
  facts.counts_from = integer(object, "counts_from");
  facts.in_column = integer(object, "in_column");
  facts.text = boolean(object, "text");
  facts.sequence = text(object, "sequence");
  facts.ranged = read_ranged(object);
  facts.selected = boolean(object, "selected").value_or(false);
  if (object.contains("cut_from")) facts.cut_from = integer(object, "cut_from").value_or(0);
  if (const json* other = object_member(object, "other_dimension"))
    facts.other_dimension =
        OtherDimensionFact{integer(*other, "dim").value_or(0), integer(*other, "size").value_or(0),
                           boolean(*other, "batch").value_or(false)};
  facts.cut_since = read_assigned(object, "cut_since");
  facts.assigned = read_assigned(object, "assigned");
  facts.indexed = read_assigned(object, "indexed");
  facts.grows = boolean(object, "grows").value_or(false);
  if (const json* kept = object_member(object, "kept")) {
    facts.kept = KeptFact{text(*kept, "name"), integer(*kept, "tokens").value_or(0)};
    if (facts.kept->name.empty()) facts.kept.reset();
  }
  facts.virtual_tokens = std::max<std::int64_t>(0, integer(object, "virtual_tokens").value_or(0));
  if (const json* generation = object_member(object, "generation")) {
    facts.generation =
        GenerationFact{integer(*generation, "prompt"), integer(*generation, "wanted"),
                       integer(*generation, "length"), boolean(*generation, "trainer").value_or(false)};
  }
  facts.library = read_library(object);
  facts.resizable = text(object, "resizable");
  if (const json* sampler = object_member(object, "sampler")) {
    facts.sampler = SamplerFact{text(*sampler, "name"), read_variable(*sampler, "variable")};
    if (facts.sampler->name.empty()) facts.sampler.reset();
  }
}

std::optional<PartFact> part(const json& facts) {
  const json* seen = object_member(facts, "seen");
  const json* object = seen == nullptr ? nullptr : object_member(*seen, "part");
  if (object == nullptr) return std::nullopt;
  const auto min = real(*object, "min");
  const auto max = real(*object, "max");
  const auto others_min = real(*object, "others_min");
  const auto others_max = real(*object, "others_max");
  if (!min || !max || !others_min || !others_max) return std::nullopt;
  return PartFact{*min,
                  *max,
                  *others_min,
                  *others_max,
                  integer(*object, "bad").value_or(0),
                  integer(*object, "count").value_or(0),
                  integer(*object, "position"),
                  boolean(*object, "zero").value_or(true)};
}

std::optional<SeenFact> seen(const json& object) {
  const json* seen = object_member(object, "seen");
  if (seen == nullptr) return std::nullopt;
  const auto min = integer(*seen, "min");
  const auto max = integer(*seen, "max");
  if (!min || !max) return std::nullopt;
  return SeenFact{*min,
                  *max,
                  integer(*seen, "count").value_or(0),
                  text(*seen, "source") == "dataset",
                  boolean(*seen, "several").value_or(false),
                  boolean(*seen, "choice").value_or(false),
                  integer(*seen, "beyond"),
                  integer(*seen, "kinds"),
                  integer(*seen, "here"),
                  integer(*seen, "gap")};
}

std::optional<Histogram> read_histogram(const json& object) {
  const json* found = object_member(object, "histogram");
  if (found == nullptr) return std::nullopt;
  const auto low = scalar(member(*found, "low"));
  const auto high = scalar(member(*found, "high"));
  Histogram histogram;
  histogram.counts = integers(*found, "counts");
  if (!low || !high || histogram.counts.empty()) return std::nullopt;
  histogram.low = as_double(*low);
  histogram.high = as_double(*high);
  histogram.below = integer(*found, "below").value_or(0);
  histogram.above = integer(*found, "above").value_or(0);
  histogram.also = integer(*found, "also").value_or(0);
  histogram.not_finite = integer(*found, "not_finite").value_or(0);
  return histogram;
}

void read_values(const json& object, Violation& facts) {
  each(object, "values", [&](const json& pair) {
    if (!pair.is_array() || pair.size() != 2) return;
    const auto value = scalar(&pair[0]);
    const auto count = integer(&pair[1]);
    if (value && count) facts.values.emplace_back(*value, *count);
  });
  facts.seen = seen(object);
  facts.part = part(object);
  if (const json* classes = object_member(object, "classes")) {
    const auto count = integer(*classes, "seen");
    const auto expected = integer(*classes, "expected");
    if (count && expected) facts.classes = Classes{*count, *expected, integers(*classes, "missing")};
  }
  if (const json* ids = object_member(object, "special_ids")) {
    for (const auto& [name, value] : ids->items()) {
      const auto id = integer(&value);
      if (id && facts.special_ids.size() < kMaxItems) facts.special_ids.emplace(name, *id);
    }
  }
  facts.squashed = text(object, "squashed");
  facts.passed = integer(object, "passed").value_or(0);
  if (const json* kinds = object_member(object, "kinds")) {
    facts.whole = boolean(*kinds, "whole");
    facts.holds_zero = boolean(*kinds, "zero");
    facts.holds_one = boolean(*kinds, "one");
  }
}

void read_history(const json& object, Violation& facts) {
  each(object, "history", [&](const json& call) {
    Operation operation{text(call, "op"), texts(call, "args"), text(call, "where")};
    if (!operation.op.empty()) facts.history.push_back(std::move(operation));
  });
  constexpr std::size_t kHistory = 20;
  if (facts.history.size() > kHistory) {
    facts.history.erase(facts.history.begin(), facts.history.end() - static_cast<std::ptrdiff_t>(kHistory));
  }
}

}  // namespace

Result<Violation> read_violation(const json& json) {
  Violation facts;
  const std::string id = text(json, "contract");
  facts.contract = find_contract(id);
  if (facts.contract == nullptr) {
    return Error{"facts", "no contract is called '" + id.substr(0, 80) + "'",
                 "see `contract` in docs/facts.md"};
  }
  const nlohmann::json* scan = object_member(json, "scan");
  if (scan == nullptr || integer(*scan, "bad").value_or(0) <= 0) {
    return Error{"facts", "`scan` with `bad` above 0 is missing", "see docs/facts.md"};
  }
  facts.scan = read_scan(*scan);
  facts.index = integers(json, "index");
  facts.variable = read_variable(json, "variable");
  if (const nlohmann::json* info = object_member(json, "tensor")) facts.tensor = tensor(*info);
  facts.source = text(json, "source");
  facts.column = text(json, "column");
  facts.table = text(json, "table");
  facts.contained = boolean(json, "contained").value_or(true);
  facts.thread = text(json, "thread");
  facts.gradients_dropped = boolean(json, "gradients_dropped").value_or(false);
  read_arguments(json, facts);
  read_made(json, facts);
  read_places(json, facts);
  read_values(json, facts);
  facts.strip = integers(json, "strip");
  facts.histogram = read_histogram(json);
  read_advice(json, facts);
  read_history(json, facts);
  return facts;
}

}  // namespace trapline::diagnose
