// Facts of kind "host_error".
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

std::optional<Holder> holder(const json& operand) {
  const json* object = object_member(operand, "held");
  if (object == nullptr) return std::nullopt;
  Holder held;
  held.name = text(*object, "name");
  held.attribute = text(*object, "attribute");
  held.kind = text(*object, "kind");
  held.type = text(*object, "type");
  held.top = text(*object, "top");
  held.part = boolean(*object, "part").value_or(false);
  held.trains = boolean(*object, "trains").value_or(false);
  held.own = boolean(*object, "own").value_or(false);
  if (const json* box = object_member(*object, "container")) {
    held.container = text(*box, "name");
    held.container_type = text(*box, "type");
    held.container_of = text(*box, "of");
  }
  return held;
}

Operand operand(const json& object) {
  Operand operand;
  operand.name = text(object, "name");
  operand.role = text(object, "as");
  operand.shape = integers(object, "shape");
  operand.dtype = text(object, "dtype");
  operand.device = text(object, "device");
  operand.user = boolean(object, "user").value_or(true);
  operand.from = text(object, "from");
  operand.held = holder(object);
  operand.grad = boolean(object, "requires_grad").value_or(false);
  operand.whole = boolean(object, "whole");
  return operand;
}

std::optional<ModuleFacts> running_module(const json& facts) {
  const json* object = object_member(facts, "module");
  if (object == nullptr) return std::nullopt;
  ModuleFacts module{
      text(*object, "name"), text(*object, "type"), {}, boolean(*object, "trained").value_or(false)};
  if (const json* attributes = object_member(*object, "attributes")) {
    for (const auto& [name, value] : attributes->items()) {
      const auto number = integer(value);
      if (number && module.attributes.size() < jsonio::kMaxItems) module.attributes.emplace(name, *number);
    }
  }
  return module;
}

std::optional<GpusFact> gpus(const json& facts) {
  const json* object = object_member(facts, "gpus");
  if (object == nullptr) return std::nullopt;
  return GpusFact{integer(*object, "count").value_or(-1), integer(*object, "index").value_or(-1),
                  integer(*object, "stand_ins").value_or(-1)};
}

std::optional<SelectionFact> selection(const json& facts) {
  const json* object = object_member(facts, "selection");
  if (object == nullptr) return std::nullopt;
  SelectionFact selection;
  selection.op = text(*object, "op");
  selection.k = integer(*object, "k");
  selection.dim = integer(*object, "dim");
  selection.text = text(*object, "text");
  selection.name = text(*object, "name");
  if (const json* tensor = object_member(*object, "tensor"))
    selection.tensor =
        TensorInfo{integers(*tensor, "shape"), text(*tensor, "dtype"), text(*tensor, "device")};
  selection.user = boolean(*object, "user").value_or(true);
  return selection;
}

std::optional<UnevenFact> uneven(const json& facts) {
  const json* object = object_member(facts, "uneven");
  if (object == nullptr) return std::nullopt;
  UnevenFact uneven{integers(*object, "usual"), integers(*object, "odd"),
                    integer(*object, "entry").value_or(-1), text(*object, "field"),
                    !integers(*object, "entries").empty()};
  return uneven.entry >= 0 && uneven.usual != uneven.odd ? std::optional(uneven) : std::nullopt;
}

// The first bad element, where the program was still there to be asked.
std::optional<Element> element(const json& facts) {
  const json* object = object_member(facts, "element");
  if (object == nullptr) return std::nullopt;
  const json* value = member(*object, "value");
  Element element;
  if (value != nullptr && (value->is_string() || value->is_number()))
    element.value = jsonio::to_scalar(*value);
  element.index = integers(*object, "index");
  element.bad = integer(*object, "bad");
  element.total = integer(*object, "total");
  if (const auto low = integer(*object, "min")) element.min = Scalar{*low};
  if (const auto high = integer(*object, "max")) element.max = Scalar{*high};
  return element.value && element.bad && element.total ? std::optional(element) : std::nullopt;
}

}  // namespace

HostError read_host_error(const json& json) {
  HostError facts;
  facts.exception = text(json, "exception");
  facts.message = text(json, "message");
  facts.call = text(json, "call");
  each(json, "operands", [&](const nlohmann::json& entry) {
    if (entry.is_object()) facts.operands.push_back(operand(entry));
  });
  each(json, "given", [&](const nlohmann::json& entry) {
    if (entry.is_object()) facts.given.push_back(operand(entry));
  });
  facts.module = running_module(json);
  if (const nlohmann::json* model = object_member(json, "model")) {
    facts.model = ModelFacts{text(*model, "name"), text(*model, "type"), text(*model, "device")};
  }
  facts.position = read_position(json);
  facts.gpus = gpus(json);
  facts.element = element(json);
  facts.nan = read_nan(json);
  facts.weights = read_weights(json);
  facts.watch = read_watch(json);
  facts.check = read_check(json);
  facts.selection = selection(json);
  if (const nlohmann::json* batch = object_member(json, "batch")) {
    const auto rows = integer(*batch, "rows"), size = integer(*batch, "size");
    if (rows && size && *rows < *size)
      facts.batch = ShortBatchFact{integer(*batch, "number").value_or(0), *rows, *size};
  }
  facts.uneven = uneven(json);
  if (const nlohmann::json* in_hand = object_member(json, "in_hand")) facts.in_hand = read_sample(*in_hand);
  facts.library = read_library(json);
  facts.stack = read_stack(json);
  facts.origin = read_origin(json);
  facts.sample = read_sample(json);
  facts.process = read_process(json);
  facts.progress = read_progress(json);
  return facts;
}

}  // namespace trapline::diagnose
