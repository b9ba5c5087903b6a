#include "diagnose/json/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "jsonio/access.hpp"
#include "jsonio/scalar.hpp"

namespace trapline::diagnose {
namespace {

using jsonio::boolean;
using jsonio::each;
using jsonio::integer;
using jsonio::integers;
using jsonio::member;
using jsonio::object_member;
using jsonio::text;
using jsonio::texts;
using nlohmann::json;

std::optional<DataSet> data_set(const json& object, const char* name) {
  const json* value = object_member(object, name);
  if (value == nullptr) return std::nullopt;
  return DataSet{text(*value, "name"), text(*value, "type"), integer(*value, "length")};
}

std::vector<Warned> read_warned(const json& object) {
  std::vector<Warned> found;
  if (const json* places = member(object, "warned"); places != nullptr && places->is_array())
    for (const json& place : *places)
      if (std::optional<Frame> frame = read_frame(&place))
        found.push_back({std::move(*frame), text(place, "text")});
  return found;
}

std::optional<WatchSeen> read_seen(const json* object) {
  if (object == nullptr) return std::nullopt;
  WatchSeen seen{text(*object, "kind"), text(*object, "name"), text(*object, "type"), 0,
                 text(*object, "unit")};
  const auto step = integer(*object, "step");
  if (!step) return std::nullopt;
  seen.step = *step;
  constexpr std::array<std::string_view, 8> kKinds{"output", "loss",    "gradient",  "input",
                                                   "target", "weights", "optimizer", "state"};
  if (std::ranges::find(kKinds, seen.kind) == kKinds.end()) return std::nullopt;
  seen.op = text(*object, "op");
  seen.state = text(*object, "state");
  seen.row = integer(*object, "row");
  seen.derived = boolean(*object, "derived").value_or(false);
  seen.beside = boolean(*object, "beside").value_or(false);
  seen.since_start = boolean(*object, "since_start").value_or(false);
  seen.given = boolean(*object, "given").value_or(false);
  seen.by_hand = boolean(*object, "by_hand").value_or(false);
  seen.leads = boolean(*object, "leads").value_or(false);
  seen.buffer = boolean(*object, "buffer").value_or(false);
  seen.since_made = boolean(*object, "since_made").value_or(false);
  seen.text = text(*object, "text");
  seen.bad = integer(*object, "bad").value_or(0);
  seen.total = integer(*object, "total").value_or(0);
  seen.at = integers(*object, "at");
  seen.optimizers = integer(*object, "optimizers").value_or(0);
  seen.uneven = boolean(*object, "uneven").value_or(false);
  seen.others = integer(*object, "others").value_or(0);
  if (seen.kind == "weights") seen.written = text(*object, "written");
  if (seen.unit.empty()) seen.unit = "step";
  return seen;
}

std::string growth_text(const json* growth) {
  if (growth == nullptr) return {};
  const auto number = [&](const char* name) {
    const json* value = member(*growth, name);
    return value != nullptr && value->is_number() ? value->get<double>() : 0.0;
  };
  return fmt::format("the {} grew from {:.2g} to {:.2g} in the {} steps before", text(*growth, "of"),
                     number("low"), number("high"), integer(*growth, "steps").value_or(0));
}

std::vector<TrainingStep> read_last_steps(const json& watch) {
  constexpr std::size_t kMost = 50;
  std::vector<TrainingStep> steps;
  const json* rows = member(watch, "last_steps");
  if (rows == nullptr || !rows->is_array()) return steps;
  for (const json& row : *rows) {
    const auto step = integer(row, "step");
    if (!step || steps.size() == kMost) continue;
    steps.push_back({*step, {}, {}});
    if (const json* loss = member(row, "loss")) steps.back().loss = jsonio::to_scalar(*loss);
    if (const json* norm = member(row, "gradient_norm"))
      steps.back().gradient_norm = jsonio::to_scalar(*norm);
  }
  return steps;
}

std::int64_t at_least_zero(const json& object, const char* name) {
  return std::max<std::int64_t>(0, integer(object, name).value_or(0));
}

}  // namespace

std::optional<Frame> read_frame(const json* value) {
  if (value == nullptr || text(*value, "file").empty()) return std::nullopt;
  Frame frame;
  frame.file = text(*value, "file");
  frame.line = at_least_zero(*value, "line");
  frame.function = text(*value, "function");
  frame.code = text(*value, "code");
  frame.user = boolean(*value, "user");
  frame.column = at_least_zero(*value, "column");
  frame.end_column = at_least_zero(*value, "end_column");
  frame.cell = at_least_zero(*value, "cell");
  frame.before = texts(*value, "before");
  frame.after = texts(*value, "after");
  return frame;
}

std::vector<Frame> read_stack(const json& facts) {
  std::vector<Frame> stack;
  each(facts, "stack", [&](const json& value) {
    if (auto frame = read_frame(&value)) stack.push_back(std::move(*frame));
  });
  return stack;
}

std::optional<Frame> read_origin(const json& facts) { return read_frame(member(facts, "origin")); }

std::optional<Variable> read_variable(const json& object, const char* name) {
  const json* value = object_member(object, name);
  return value == nullptr ? std::nullopt : read_variable(*value);
}

std::optional<Variable> read_variable(const json& value) {
  if (text(value, "name").empty()) return std::nullopt;
  Variable variable{text(value, "name"), integers(value, "index")};
  // Without its index it would be another element.
  const json* index = member(value, "index");
  if (index != nullptr && index->is_array() && variable.index.size() != index->size()) return std::nullopt;
  return variable;
}

std::optional<Sample> read_sample(const json& facts) {
  const json* object = object_member(facts, "sample");
  if (object == nullptr) return std::nullopt;
  Sample sample{integer(*object, "dataset_index"), integer(*object, "batch"), integer(*object, "row"),
                text(*object, "request")};
  sample.loader = text(*object, "loader");
  sample.dataset = data_set(*object, "dataset");
  sample.base_index = integer(*object, "base_index");
  sample.base = data_set(*object, "base");
  sample.file = text(*object, "file");
  sample.key = text(*object, "key");
  sample.one_of = integers(*object, "one_of");
  sample.of = integer(*object, "of");
  sample.by = text(*object, "by");
  sample.likely = boolean(*object, "likely").value_or(false);
  return sample;
}

std::optional<Process> read_process(const json& facts) {
  const json* process = object_member(facts, "process");
  if (process == nullptr) return std::nullopt;
  return Process{integer(*process, "rank"), integer(*process, "pid"), text(*process, "host"),
                 text(*process, "device"), integer(*process, "world_size")};
}

std::optional<Progress> read_progress(const json& facts) {
  const json* progress = object_member(facts, "progress");
  if (progress == nullptr) return std::nullopt;
  Progress told{integer(*progress, "step"), std::nullopt, text(*progress, "phase"), text(*progress, "model"),
                text(*progress, "trainer")};
  const json* epoch = member(*progress, "epoch");
  if (epoch != nullptr && epoch->is_number()) told.epoch = jsonio::to_scalar(*epoch);
  const bool any =
      told.step || told.epoch || !told.phase.empty() || !told.model.empty() || !told.trainer.empty();
  return any ? std::optional(told) : std::nullopt;
}

std::optional<PositionFact> read_position(const json& facts) {
  const json* object = object_member(facts, "position");
  if (object == nullptr) return std::nullopt;
  PositionFact table{integer(*object, "rows").value_or(0),
                     integer(*object, "offset").value_or(0),
                     integer(*object, "length"),
                     text(*object, "name"),
                     text(*object, "setting"),
                     boolean(*object, "parameter").value_or(false),
                     integer(*object, "value").value_or(0)};
  if (const json* limit = object_member(*object, "limit"); limit != nullptr) {
    table.limit_text = text(*limit, "text");
    table.limit_line = integer(*limit, "line").value_or(0);
    table.limit_more = boolean(*limit, "more").value_or(false);
    table.limit_follows = boolean(*limit, "follows").value_or(false);
  }
  if (table.value <= 0) table.value = table.rows;
  constexpr std::int64_t kMax = std::int64_t{1} << 40;  // sums with it stay in range
  if (table.offset < 0 || table.rows <= table.offset || table.rows > kMax || table.length > kMax) {
    return std::nullopt;
  }
  return table;
}

LibraryFact read_library(const json& facts) {
  const json* library = object_member(facts, "library");
  if (library == nullptr) return {};
  LibraryFact fact{text(*library, "caller"),  text(*library, "owner"),   text(*library, "maker"),
                   text(*library, "setting"), texts(*library, "owners"), texts(*library, "callers")};
  if (const json* settings = object_member(*library, "settings")) {
    for (const auto& [name, values] : settings->items()) {
      if (!values.is_array()) continue;
      for (const json& value : values) {
        if (value.is_number_integer()) fact.settings[name].push_back(value.get<std::int64_t>());
      }
    }
  }
  if (member(*library, "made_of") != nullptr) fact.made_of = texts(*library, "made_of");
  return fact;
}

namespace {

BadPart read_bad_part(const json& object) {
  return {integers(object, "index"), integer(object, "bad").value_or(0),
          integer(object, "total").value_or(0)};
}

}  // namespace

std::optional<NanFact> read_nan(const json& facts) {
  const json* object = object_member(facts, "nan");
  if (object == nullptr) return std::nullopt;
  NanFact nan;
  if (const json* input = object_member(*object, "input")) {
    const json* value = member(*input, "value");
    nan.module = text(*input, "module");
    if (value != nullptr && value->is_string()) nan.value = jsonio::to_scalar(*value);
    if (nan.value && std::isfinite(as_double(*nan.value))) nan.value.reset();
    if (nan.value) nan.input = read_variable(*object, "input");
    nan.data = boolean(*object, "data").value_or(false);
  }
  if (const json* precision = object_member(*object, "precision");
      precision != nullptr && text(*precision, "dtype") == "float16") {
    nan.half = text(*precision, "module");
    nan.autocast = text(*precision, "by") == "autocast";
  }
  if (const json* apart = object_member(*object, "apart")) {
    nan.apart = text(*apart, "text");
    nan.apart_line = integer(*apart, "line").value_or(0);
  }
  if (const json* banned = object_member(*object, "banned")) {
    nan.banned = text(*banned, "name");
    nan.banned_row = integer(*banned, "row").value_or(0);
  }
  if (const json* losses = object_member(*object, "losses")) {
    const auto index = integer(*losses, "index");
    if (index && *index > 0 && !text(*losses, "name").empty())
      nan.loss = Variable{text(*losses, "name"), {*index}};
    nan.losses = integer(*losses, "count").value_or(0);
  }
  if (const json* made = object_member(*object, "made")) {
    nan.made_by = text(*made, "op");
    nan.made_name = text(*made, "name");
    nan.made_text = text(*made, "text");
    nan.made_at = read_frame(member(*made, "origin"));
    nan.made_of_finite = boolean(*made, "finite").value_or(true);
    if (const json* part = object_member(*made, "part")) nan.made_part = read_bad_part(*part);
  }
  nan.warned = read_warned(*object);
  nan.zero = text(*object, "zero");
  nan.situation = text(*object, "situation");
  nan.trains = boolean(*object, "trains").value_or(true);
  nan.command = text(*object, "command");
  return nan;
}

std::optional<WeightsFact> read_weights(const json& facts) {
  const json* weights = object_member(facts, "weights");
  if (weights == nullptr) return std::nullopt;
  WeightsFact seen{text(*weights, "name"),
                   integer(*weights, "bad").value_or(0),
                   integer(*weights, "total").value_or(0),
                   {},
                   0};
  if (const json* grown = object_member(*weights, "grown")) {
    seen.grown = text(*grown, "name");
    const json* value = member(*grown, "value");
    seen.to = value != nullptr && value->is_number() ? value->get<double>() : 0.0;
  }
  seen.buffer = text(*weights, "buffer");
  if (seen.bad < 0 || (seen.bad > 0 && seen.name.empty()) || (seen.bad == 0 && seen.total <= 0)) {
    return std::nullopt;
  }
  return seen;
}

std::optional<WatchFact> read_watch(const json& facts) {
  const json* object = object_member(facts, "watch");
  auto first = read_seen(object);
  if (!first) return std::nullopt;
  WatchFact watch{text(*object, "what") != "inf",
                  std::move(*first),
                  read_seen(object_member(*object, "inf_before")),
                  read_frame(member(*object, "origin")),
                  read_sample(*object),
                  growth_text(object_member(*object, "growth")),
                  boolean(*object, "looked").value_or(true),
                  boolean(*object, "half").value_or(false),
                  boolean(*object, "input_finite").value_or(false),
                  boolean(*object, "finite_before").value_or(false),
                  boolean(*object, "gradients_finite").value_or(false)};
  if (const json* backward = object_member(*object, "backward")) {
    watch.backward = !watch.first.op.empty();
    watch.backward_name = text(*backward, "name");
    watch.backward_type = text(*backward, "type");
  }
  watch.setting = text(*object, "setting");
  if (const json* scheduler = object_member(*object, "scheduler"))
    watch.scheduler = fmt::format("`{}` ({})", text(*scheduler, "name"), text(*scheduler, "type"));
  if (const json* part = object_member(*object, "part")) watch.part = read_bad_part(*part);
  if (const json* met = object_member(*object, "met")) {
    watch.met_op = text(*met, "op");
    if (const auto line = read_frame(member(*met, "origin")))
      watch.met = MadeAt{line->code, line->file, line->line};
    watch.met_part = read_bad_part(*met);
  }
  if (const json* fetched = object_member(*object, "fetched")) {
    watch.fetched_op = text(*fetched, "op");
    watch.fetched_numpy = text(*fetched, "numpy");
  }
  if (const json* rows = object_member(*object, "rows")) {
    watch.rows_bad = integer(*rows, "bad").value_or(0);
    watch.rows_total = integer(*rows, "total").value_or(0);
    watch.rows_first = integers(*rows, "first");
    watch.rows_place = integers(*rows, "place");
    watch.rows_batch = boolean(*rows, "batch").value_or(false);
  }
  watch.element = read_variable(*object, "element");
  if (watch.element) watch.element_nan = text(*object_member(*object, "element"), "value") == "nan";
  watch.called = read_frame(member(*object, "called"));
  watch.left_out = boolean(*object, "left_out").value_or(false);
  watch.later = boolean(*object, "later").value_or(false);
  watch.smoothed = boolean(*object, "smoothed").value_or(false);
  watch.zeros = text(*object, "zeros");
  watch.own = boolean(*object, "own").value_or(false);
  watch.late = boolean(*object, "late").value_or(false);
  watch.factor = boolean(*object, "factor").value_or(false);
  watch.infinite = text(*object, "infinite");
  watch.factor_by = text(*object, "factor_by");
  if (const json* divides = object_member(*object, "divides"))
    watch.divides =
        MadeAt{text(*divides, "text"), text(*divides, "file"), integer(*divides, "line").value_or(0)};
  if (const json* computed = object_member(*object, "computed")) {
    watch.factor_name = text(*computed, "name");
    watch.factor_text = text(*computed, "text");
    if (const json* before = object_member(*computed, "before"))
      watch.factor_before =
          MadeAt{text(*before, "text"), text(*before, "file"), integer(*before, "line").value_or(0)};
  }
  if (const json* site = object_member(*object, "site")) {
    watch.site = text(*site, "name");
    watch.site_type = text(*site, "type");
    const json* value = member(*site, "value");
    if (value != nullptr && value->is_number()) {
      watch.site_parameter = text(*site, "parameter");
      watch.site_value = value->get<double>();
    }
  }
  watch.or_before = boolean(*object, "or_before").value_or(false);
  watch.changed = boolean(*object, "changed").value_or(false);
  watch.drawn = boolean(*object, "drawn").value_or(false);
  watch.made = boolean(*object, "made").value_or(false);
  watch.made_with = texts(*object, "made_with");
  if (const std::string spoilt = text(*object, "spoilt"); !spoilt.empty())
    watch.spoilt = spoilt == "nan" ? "NaN" : "Inf";
  watch.warned = read_warned(*object);
  watch.last_steps = read_last_steps(*object);
  return watch;
}

Result<Watch> read_watched_run(const json& json) {
  std::optional<WatchFact> seen = read_watch(json);
  if (!seen) return Error{"facts", "`watch` is missing or not readable", "see docs/facts.md"};
  return Watch{std::move(*seen), read_process(json)};
}

}  // namespace trapline::diagnose
