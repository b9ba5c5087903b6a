// The fact `check`: what an installed package's own check refused.
#include "diagnose/host/case.hpp"
#include "diagnose/json/parts.hpp"
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
using nlohmann::json;

std::optional<Scalar> scalar(const json& object, const char* name) {
  const json* value = member(object, name);
  if (value != nullptr && value->is_boolean()) return Scalar{std::int64_t{value->get<bool>()}};
  return value == nullptr ? std::nullopt : jsonio::to_scalar(*value);
}

TensorInfo tensor(const json& object) {
  return {integers(object, "shape"), text(object, "dtype"), text(object, "device")};
}

Element element(const json& object) {
  Element element;
  element.index = integers(object, "index");
  element.value = scalar(object, "value");
  element.bad = integer(object, "bad");
  element.total = integer(object, "total");
  element.min = scalar(object, "min");
  element.max = scalar(object, "max");
  return element;
}

// One side of a comparison: its text, and its value as text.
void side(const json& pair, CheckFact& check) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) return;
  std::string value;
  if (pair[1].is_array()) {
    Shape sizes;
    for (const json& item : pair[1]) {
      if (const auto size = integer(item); size && sizes.size() < jsonio::kMaxItems) sizes.push_back(*size);
    }
    value = to_text(sizes);
  } else if (const auto number = jsonio::to_scalar(pair[1])) {
    value = to_text(*number);
  }
  if (!value.empty()) check.sides.emplace_back(pair[0].get<std::string>(), value);
}

}  // namespace

std::optional<CheckFact> read_check(const json& facts) {
  const json* object = object_member(facts, "check");
  if (object == nullptr) return std::nullopt;
  CheckFact check;
  check.package = text(*object, "package");
  check.op = text(*object, "op");
  check.within = text(*object, "within");
  check.where = text(*object, "where");
  check.condition = text(*object, "condition");
  check.needs = boolean(*object, "needs").value_or(false);
  check.joint = boolean(*object, "joint").value_or(false);
  check.kind = text(*object, "kind");
  check.name = text(*object, "name");
  if (const json* described = object_member(*object, "tensor")) check.tensor = tensor(*described);
  check.variable = read_variable(*object, "variable");
  if (const json* first = object_member(*object, "element")) check.element = element(*first);
  each(*object, "values", [&](const json& pair) {
    if (!pair.is_array() || pair.size() != 2) return;
    const auto value = jsonio::to_scalar(pair[0]);
    const auto count = integer(pair[1]);
    if (value && count) check.values.emplace_back(*value, *count);
  });
  check.lower = scalar(*object, "lower");
  check.upper = scalar(*object, "upper");
  check.closed = boolean(*object, "closed").value_or(false);
  check.limit = text(*object, "limit");
  each(*object, "allowed", [&](const json& value) {
    if (const auto number = jsonio::to_scalar(value)) check.allowed.push_back(*number);
  });
  check.two_colours = boolean(*object, "two_colours").value_or(false);
  check.distinct = integer(*object, "distinct").value_or(0);
  each(*object, "row", [&](const json& value) {
    if (const auto number = jsonio::to_scalar(value)) check.row.push_back(*number);
  });
  each(*object, "tensors", [&](const json& entry) {
    if (entry.is_object()) check.tensors.push_back({text(entry, "name"), tensor(entry)});
  });
  each(*object, "sides", [&](const json& pair) { side(pair, check); });
  return check.package.empty() || check.condition.empty() ? std::nullopt : std::optional(check);
}

}  // namespace trapline::diagnose
