#include "check/tally_json.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "jsonio/access.hpp"

namespace trapline::check {
namespace {

using jsonio::member;
using nlohmann::json;

constexpr std::size_t kMaxItems = 1 << 20;

template <class Take>
void each(const json& object, const char* name, Take take) {
  jsonio::each(object, name, take, kMaxItems);
}

// Kept apart from the text of a report: numbers come as "f:1.5" and "f:nan", and come back as the very same
// Scalar.
json scalar(const Scalar& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  return "f:" + to_text(value);
}

std::optional<Scalar> scalar_from(const json& value) {
  if (value.is_number_integer()) return Scalar(value.get<std::int64_t>());
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (!text.starts_with("f:")) return std::nullopt;
  if (text == "f:nan") return Scalar(std::numeric_limits<double>::quiet_NaN());
  if (text == "f:inf") return Scalar(std::numeric_limits<double>::infinity());
  if (text == "f:-inf") return Scalar(-std::numeric_limits<double>::infinity());
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, number);
  return error == std::errc{} && stop == end ? std::optional(Scalar(number)) : std::nullopt;
}

void read(const json& object, const char* name, std::int64_t& out) {
  out = jsonio::integer(object, name).value_or(out);
}

void read(const json& object, const char* name, std::optional<Scalar>& out) {
  if (const json* value = member(object, name)) out = scalar_from(*value);
}

json place(const Place& at) {
  json out = {{"index", at.index}, {"value", scalar(at.value)}};
  if (at.line > 0) out["line"] = at.line;
  if (!at.source.empty()) out["source"] = at.source;
  if (at.before > 0) out["before"] = at.before;
  return out;
}

Place place_from(const json& object) {
  Place at;
  each(object, "index", [&](const json& one) {
    if (one.is_number_integer()) at.index.push_back(one.get<std::int64_t>());
  });
  read(object, "line", at.line);
  at.source = jsonio::text(object, "source");
  read(object, "before", at.before);
  if (const json* value = member(object, "value")) at.value = scalar_from(*value).value_or(std::int64_t{0});
  return at;
}

json odd(const InvalidValues& one) {
  return {{"count", one.count}, {"first", place(one.first)}, {"text", one.text}, {"absent", one.absent}};
}

InvalidValues odd_from(const json* object) {
  InvalidValues one;
  if (object == nullptr) return one;
  read(*object, "count", one.count);
  one.text = jsonio::text(*object, "text");
  const json* absent = member(*object, "absent");
  one.absent = absent != nullptr && *absent == json(true);
  if (const json* first = member(*object, "first")) one.first = place_from(*first);
  return one;
}

// Runs of classes that occur, as [from, end).
json seen_runs(const std::vector<bool>& seen) {
  json runs = json::array();
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) continue;
    const std::size_t from = i;
    while (i < seen.size() && seen[i]) ++i;
    runs.push_back({from, i});
  }
  return {{"of", seen.size()}, {"runs", std::move(runs)}};
}

std::vector<bool> seen_from(const json* object) {
  if (object == nullptr) return {};
  std::int64_t size = 0;
  read(*object, "of", size);
  if (size <= 0 || size > Detail::kMaxClasses) return {};
  std::vector<bool> seen(static_cast<std::size_t>(size));
  each(*object, "runs", [&](const json& run) {
    if (!run.is_array() || run.size() != 2 || !run[0].is_number_integer() || !run[1].is_number_integer())
      return;
    const auto from = run[0].get<std::int64_t>(), end = run[1].get<std::int64_t>();
    if (from < 0 || end > size) return;
    for (std::int64_t i = from; i < end; ++i) seen[static_cast<std::size_t>(i)] = true;
  });
  return seen;
}

}  // namespace

json to_json(const Tally& tally) {
  json out = {{"total", tally.total},
              {"bad", tally.bad},
              {"kept", tally.kept},
              {"reason", static_cast<int>(tally.reason)},
              {"detailed", tally.detailed}};
  const auto put = [&](const char* name, const std::optional<Scalar>& value) {
    if (value) out[name] = scalar(*value);
  };
  put("min", tally.min);
  put("max", tally.max);
  put("kept_min", tally.kept_min);
  put("kept_max", tally.kept_max);
  if (tally.first) out["first"] = place(*tally.first);
  if (tally.missing.count > 0) out["missing"] = odd(tally.missing);
  if (tally.malformed.count > 0) out["malformed"] = odd(tally.malformed);
  if (!tally.detailed) return out;
  json values = json::array();
  for (const auto& [value, count] : tally.detail.values) values.push_back({scalar(value), count});
  out["values"] = std::move(values);
  out["other_values"] = tally.detail.other_values;
  json places = json::array();
  for (const Place& at : tally.detail.places) places.push_back(place(at));
  out["places"] = std::move(places);
  if (!tally.detail.seen.empty()) out["seen"] = seen_runs(tally.detail.seen);
  return out;
}

Tally tally_from(const json& object) {
  Tally tally;
  read(object, "total", tally.total);
  read(object, "bad", tally.bad);
  read(object, "kept", tally.kept);
  read(object, "min", tally.min);
  read(object, "max", tally.max);
  read(object, "kept_min", tally.kept_min);
  read(object, "kept_max", tally.kept_max);
  std::int64_t reason = 0;
  read(object, "reason", reason);
  if (reason >= 0 && reason <= static_cast<std::int64_t>(Reason::kFirstNotZero)) {
    tally.reason = static_cast<Reason>(reason);
  }
  if (const json* first = member(object, "first")) tally.first = place_from(*first);
  tally.missing = odd_from(member(object, "missing"));
  tally.malformed = odd_from(member(object, "malformed"));
  tally.detailed = jsonio::boolean(object, "detailed").value_or(false);
  each(object, "values", [&](const json& pair) {
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_integer()) return;
    if (const auto value = scalar_from(pair[0])) tally.detail.values[*value] += pair[1].get<std::int64_t>();
  });
  read(object, "other_values", tally.detail.other_values);
  each(object, "places", [&](const json& one) {
    if (tally.detail.places.size() < Detail::kMaxPlaces) tally.detail.places.push_back(place_from(one));
  });
  tally.detail.seen = seen_from(member(object, "seen"));
  return tally;
}

json to_json(const Lengths& lengths) {
  return {{"rows", lengths.rows},
          {"too_long", lengths.too_long},
          {"longest", lengths.longest},
          {"row", lengths.first.index.empty() ? 0 : lengths.first.index[0]},
          {"line", lengths.first.line}};
}

Lengths lengths_from(const json& object) {
  Lengths lengths;
  read(object, "rows", lengths.rows);
  read(object, "too_long", lengths.too_long);
  read(object, "longest", lengths.longest);
  lengths.first.index = {0};
  read(object, "row", lengths.first.index[0]);
  read(object, "line", lengths.first.line);
  return lengths;
}

}  // namespace trapline::check
