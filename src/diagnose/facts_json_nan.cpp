#include <limits>
#include <nlohmann/json.hpp>

#include "diagnose/nan.hpp"

namespace trapline {
namespace {

using nlohmann::json;

constexpr std::size_t kLongest = 1024;
constexpr std::size_t kMostDimensions = 64;

const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text(const json* object, const char* name) {
  const json* value = object == nullptr ? nullptr : member(*object, name);
  if (value == nullptr || !value->is_string()) return {};
  return value->get_ref<const std::string&>().substr(0, kLongest);
}

std::optional<Variable> variable(const json* object) {
  Variable result{text(object, "name"), {}};
  if (result.name.empty()) return std::nullopt;
  const json* index = member(*object, "index");
  if (index == nullptr || !index->is_array() || index->size() > kMostDimensions) return result;
  for (const json& place : *index) {
    if (!place.is_number_integer()) return std::nullopt;
    result.index.push_back(place.get<std::int64_t>());
  }
  return result;
}

std::optional<Scalar> not_finite(const std::string& word) {
  if (word == "nan") return Scalar(std::numeric_limits<double>::quiet_NaN());
  if (word == "inf") return Scalar(std::numeric_limits<double>::infinity());
  if (word == "-inf") return Scalar(-std::numeric_limits<double>::infinity());
  return std::nullopt;
}

}  // namespace

std::optional<NanFact> read_nan(const json& facts) {
  const json* object = member(facts, "nan");
  if (object == nullptr || !object->is_object()) return std::nullopt;
  NanFact nan;
  if (const json* input = member(*object, "input")) {
    nan.input = variable(input);
    nan.value = not_finite(text(input, "value"));
    nan.module = text(input, "module");
    if (!nan.value) nan.input.reset();
  }
  if (const json* precision = member(*object, "precision")) {
    if (text(precision, "dtype") == "float16") {
      nan.half = text(precision, "module");
      nan.autocast = text(precision, "by") == "autocast";
    }
  }
  if (const json* banned = member(*object, "banned")) {
    nan.banned = text(banned, "name");
    if (const json* row = member(*banned, "row"); row != nullptr && row->is_number_integer()) {
      nan.banned_row = row->get<std::int64_t>();
    }
  }
  nan.zero = text(object, "zero");
  nan.situation = text(object, "situation");
  if (const json* trains = member(*object, "trains"); trains != nullptr && trains->is_boolean()) {
    nan.trains = trains->get<bool>();
  }
  nan.command = text(object, "command");
  return nan;
}

}  // namespace trapline
