#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "diagnose/violation/facts.hpp"

namespace trapline {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxItems = 4096;
constexpr std::size_t kMaxText = 1U << 16U;

const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text(const json& object, const char* name) {
  const json* value = member(object, name);
  if (value == nullptr || !value->is_string()) return {};
  return value->get_ref<const std::string&>().substr(0, kMaxText);
}

// Integers beyond 2^53 come as strings; nan and inf too.
std::optional<Scalar> scalar(const json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return Scalar(std::int64_t{value->get<bool>() ? 1 : 0});
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    return std::nullopt;
  }
  if (value->is_number_integer()) return Scalar(value->get<std::int64_t>());
  if (value->is_number_float()) return Scalar(value->get<double>());
  if (!value->is_string()) return std::nullopt;
  const auto& word = value->get_ref<const std::string&>();
  if (word == "nan") return Scalar(std::numeric_limits<double>::quiet_NaN());
  if (word == "inf") return Scalar(std::numeric_limits<double>::infinity());
  if (word == "-inf") return Scalar(-std::numeric_limits<double>::infinity());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return Scalar(number);
}

std::optional<std::int64_t> integer(const json* value) {
  const auto number = scalar(value);
  if (!number || !is_integer(*number)) return std::nullopt;
  return std::get<std::int64_t>(*number);
}

std::optional<std::int64_t> integer(const json& object, const char* name) {
  return integer(member(object, name));
}

std::optional<bool> boolean(const json& object, const char* name) {
  const json* value = member(object, name);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
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

std::optional<Variable> variable(const json& object, const char* name) {
  const json* value = member(object, name);
  if (value == nullptr || text(*value, "name").empty()) return std::nullopt;
  return Variable{text(*value, "name"), integers(*value, "index")};
}

std::optional<Frame> frame(const json* value) {
  if (value == nullptr || text(*value, "file").empty()) return std::nullopt;
  Frame result;
  result.file = text(*value, "file");
  result.line = integer(*value, "line").value_or(0);
  result.function = text(*value, "function");
  result.code = text(*value, "code");
  if (const json* user = member(*value, "user"); user != nullptr && user->is_boolean())
    result.user = user->get<bool>();
  result.column = integer(*value, "column").value_or(0);
  result.end_column = integer(*value, "end_column").value_or(0);
  result.cell = integer(*value, "cell").value_or(0);
  return result;
}

// Calls take(element) for the elements of a list, at most kMaxItems.
template <class Take>
void each(const json& object, const char* name, Take take) {
  const json* values = member(object, name);
  if (values == nullptr || !values->is_array()) return;
  std::size_t count = 0;
  for (const json& value : *values) {
    if (++count > kMaxItems) return;
    take(value);
  }
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
  if (const json* flag = member(object, "is_float")) {
    scan.is_float = flag->is_boolean() ? flag->get<bool>() : integer(flag).value_or(0) != 0;
  }
  return scan;
}

void read_arguments(const json& object, Facts& facts) {
  const json* args = member(object, "args");
  if (args == nullptr || !args->is_object()) return;
  for (const auto& [name, value] : args->items()) {
    if (facts.args.size() == kMaxItems) return;
    ArgumentFact argument;
    argument.integer = integer(&value);
    if (value.is_object()) argument.tensor = tensor(value);
    if (argument.integer || argument.tensor) facts.args.emplace(name, std::move(argument));
  }
}

std::optional<DataSet> data_set(const json* value) {
  if (value == nullptr || !value->is_object()) return std::nullopt;
  return DataSet{text(*value, "name"), text(*value, "type"), integer(*value, "length")};
}

}  // namespace

Sample read_sample(const json& object) {
  Sample sample{integer(object, "dataset_index"), integer(object, "batch"), integer(object, "row"),
                text(object, "request")};
  sample.loader = text(object, "loader");
  sample.dataset = data_set(member(object, "dataset"));
  sample.base_index = integer(object, "base_index");
  sample.base = data_set(member(object, "base"));
  sample.file = text(object, "file");
  sample.key = text(object, "key");
  sample.one_of = integers(object, "one_of");
  sample.of = integer(object, "of");
  sample.by = text(object, "by");
  const json* likely = member(object, "likely");
  sample.likely = likely != nullptr && likely->is_boolean() && likely->get<bool>();
  return sample;
}

namespace {

void read_places(const json& object, Facts& facts) {
  facts.origin = frame(member(object, "origin"));
  facts.surfaced = frame(member(object, "surfaced"));
  each(object, "stack", [&](const json& value) {
    if (auto one = frame(&value)) facts.stack.push_back(std::move(*one));
  });
  if (const json* layer = member(object, "layer"); layer != nullptr && layer->is_object()) {
    facts.layer = Layer{text(*layer, "name"),     text(*layer, "type"), text(*layer, "attribute"),
                        integer(*layer, "value"), std::nullopt,         text(*layer, "arguments")};
    const json* certain = member(*layer, "certain");
    facts.layer_certain = certain == nullptr || !certain->is_boolean() || certain->get<bool>();
  }
  if (const json* cast = member(object, "nan_cast")) {
    if (auto place = frame(member(*cast, "frame"))) {
      facts.nan_cast = NanCastFact{std::move(*place), integer(*cast, "bad").value_or(0)};
    }
  }
  facts.watch = read_watch(object);
  facts.nan = read_nan(object);
  if (const json* sample = member(object, "sample"); sample != nullptr && sample->is_object()) {
    facts.sample = read_sample(*sample);
  }
  if (const json* process = member(object, "process"); process != nullptr && process->is_object()) {
    facts.process = Process{integer(*process, "rank"), integer(*process, "pid"), text(*process, "host"),
                            text(*process, "device"), integer(*process, "world_size")};
  }
}

std::vector<std::string> texts(const json& object, const char* name) {
  std::vector<std::string> list;
  each(object, name, [&](const json& value) {
    if (value.is_string()) list.push_back(value.get_ref<const std::string&>().substr(0, kMaxText));
  });
  return list;
}

// What tells where the user can act.
void read_advice(const json& object, Facts& facts) {
  if (const json* counted = member(object, "counted")) {
    const auto count = integer(*counted, "count");
    if (count && *count > 0) facts.counted = CountedFact{*count, text(*counted, "of")};
  }
  if (const json* position = member(object, "position")) {
    const PositionFact fact{integer(*position, "rows").value_or(0),
                            integer(*position, "offset").value_or(0),
                            integer(*position, "length"),
                            text(*position, "name"),
                            text(*position, "setting"),
                            integer(*position, "value").value_or(integer(*position, "rows").value_or(0))};
    if (fact.offset >= 0 && fact.rows > fact.offset) facts.position = fact;
  }
  if (const json* setting = member(object, "setting")) {
    facts.setting = SettingFact{text(*setting, "name"), integer(*setting, "value").value_or(0)};
    if (facts.setting->name.empty()) facts.setting.reset();
  }
  facts.counts_from = integer(object, "counts_from");
  facts.in_column = integer(object, "in_column");
  if (const json* is_text = member(object, "text"); is_text != nullptr && is_text->is_boolean()) {
    facts.text = is_text->get<bool>();
  }
  facts.sequence = text(object, "sequence");
  facts.grows = boolean(object, "grows").value_or(false);
  facts.virtual_tokens = std::max<std::int64_t>(0, integer(object, "virtual_tokens").value_or(0));
  if (const json* generation = member(object, "generation");
      generation != nullptr && generation->is_object()) {
    facts.generation = GenerationFact{integer(*generation, "prompt"), integer(*generation, "wanted")};
  }
  if (const json* library = member(object, "library")) {
    facts.library = {text(*library, "caller"), text(*library, "owner"), text(*library, "maker"),
                     texts(*library, "owners"), texts(*library, "callers")};
  }
}

std::optional<PartFact> part(const json* object) {
  if (object == nullptr || !object->is_object()) return std::nullopt;
  const auto min = integer(*object, "min");
  const auto max = integer(*object, "max");
  const auto others_min = integer(*object, "others_min");
  const auto others_max = integer(*object, "others_max");
  if (!min || !max || !others_min || !others_max) return std::nullopt;
  return PartFact{
      *min,        *max,        integer(*object, "bad").value_or(0), integer(*object, "count").value_or(0),
      *others_min, *others_max, integer(*object, "position")};
}

void read_values(const json& object, Facts& facts) {
  each(object, "values", [&](const json& pair) {
    if (!pair.is_array() || pair.size() != 2) return;
    const auto value = scalar(&pair[0]);
    const auto count = integer(&pair[1]);
    if (value && count) facts.values.emplace_back(*value, *count);
  });
  if (const json* seen = member(object, "seen"); seen != nullptr && seen->is_object()) {
    const auto min = integer(*seen, "min");
    const auto max = integer(*seen, "max");
    if (min && max) {
      facts.seen =
          SeenFact{*min, *max, integer(*seen, "count").value_or(0), text(*seen, "source") == "dataset"};
      const json* several = member(*seen, "several");
      facts.seen->several = several != nullptr && several->is_boolean() && several->get<bool>();
      facts.seen->part = part(member(*seen, "part"));
    }
  }
  if (const json* classes = member(object, "classes"); classes != nullptr && classes->is_object()) {
    const auto count = integer(*classes, "seen");
    const auto expected = integer(*classes, "expected");
    if (count && expected) facts.classes = Classes{*count, *expected, integers(*classes, "missing")};
  }
  if (const json* ids = member(object, "special_ids"); ids != nullptr && ids->is_object()) {
    for (const auto& [name, value] : ids->items()) {
      const auto id = integer(&value);
      if (id && facts.special_ids.size() < kMaxItems) facts.special_ids.emplace(name, *id);
    }
  }
  each(object, "history", [&](const json& call) {
    Operation operation{text(call, "op"), {}, text(call, "where")};
    each(call, "args", [&](const json& argument) {
      if (argument.is_string())
        operation.args.push_back(argument.get_ref<const std::string&>().substr(0, kMaxText));
    });
    if (!operation.op.empty()) facts.history.push_back(std::move(operation));
  });
  constexpr std::size_t kHistory = 20;
  if (facts.history.size() > kHistory) {
    facts.history.erase(facts.history.begin(), facts.history.end() - static_cast<std::ptrdiff_t>(kHistory));
  }
}

}  // namespace

std::optional<std::int64_t> Facts::size(const std::string& name, std::int64_t dim) const {
  const auto found = args.find(name);
  if (found == args.end() || !found->second.tensor) return std::nullopt;
  const auto& shape = found->second.tensor->shape;
  const auto dims = static_cast<std::int64_t>(shape.size());
  if (dim < 0) dim += dims;
  if (dim < 0 || dim >= dims) return std::nullopt;
  return shape[static_cast<std::size_t>(dim)];
}

std::optional<std::int64_t> Facts::integer(const std::string& name) const {
  const auto found = args.find(name);
  return found == args.end() ? std::nullopt : found->second.integer;
}

std::optional<WeightsFact> read_weights(const nlohmann::json& json) {
  const nlohmann::json* weights = member(json, "weights");
  if (weights == nullptr) return std::nullopt;
  WeightsFact seen{text(*weights, "name"), integer(*weights, "bad").value_or(0),
                   integer(*weights, "total").value_or(0)};
  if (seen.bad < 0 || (seen.bad > 0 && seen.name.empty()) || (seen.bad == 0 && seen.total <= 0))
    return std::nullopt;
  return seen;
}

Result<Facts> read_facts(const nlohmann::json& json) {
  Facts facts;
  const std::string id = text(json, "contract");
  facts.contract = find_contract(id);
  if (facts.contract == nullptr) {
    return Error{"facts", "no contract is called '" + id.substr(0, 80) + "'",
                 "see `contract` in docs/facts.md"};
  }
  const nlohmann::json* scan = member(json, "scan");
  if (scan == nullptr || !scan->is_object() || integer(*scan, "bad").value_or(0) <= 0) {
    return Error{"facts", "`scan` with `bad` above 0 is missing", "see docs/facts.md"};
  }
  facts.scan = read_scan(*scan);
  facts.index = integers(json, "index");
  facts.variable = variable(json, "variable");
  if (const nlohmann::json* info = member(json, "tensor")) facts.tensor = tensor(*info);
  read_arguments(json, facts);
  facts.source = text(json, "source");
  facts.column = text(json, "column");
  facts.table = text(json, "table");
  if (const nlohmann::json* contained = member(json, "contained");
      contained != nullptr && contained->is_boolean()) {
    facts.contained = contained->get<bool>();
  }
  facts.thread = text(json, "thread");
  facts.gradients_dropped = boolean(json, "gradients_dropped").value_or(false);
  facts.resizable = text(json, "resizable");
  if (const nlohmann::json* sampler = member(json, "sampler"); sampler != nullptr && sampler->is_object()) {
    facts.sampler = SamplerFact{text(*sampler, "name"), variable(*sampler, "variable")};
    if (facts.sampler->name.empty()) facts.sampler.reset();
  }
  if (const nlohmann::json* kinds = member(json, "kinds"); kinds != nullptr && kinds->is_object()) {
    facts.whole = boolean(*kinds, "whole");
    facts.holds_zero = boolean(*kinds, "zero");
  }
  facts.weights = read_weights(json);
  read_places(json, facts);
  read_values(json, facts);
  read_advice(json, facts);
  return facts;
}

}  // namespace trapline
