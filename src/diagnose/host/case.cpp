#include "diagnose/host/case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace trapline {
namespace {

using nlohmann::json;

std::string text_member(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Shape shape_member(const json& object) {
  Shape shape;
  const auto it = object.find("shape");
  if (it == object.end() || !it->is_array()) return shape;
  for (const json& size : *it) shape.push_back(size.is_number_integer() ? size.get<std::int64_t>() : 0);
  return shape;
}

bool flag_member(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

std::optional<Holder> read_holder(const json& operand) {
  const auto it = operand.find("held");
  if (it == operand.end() || !it->is_object()) return std::nullopt;
  Holder held{text_member(*it, "name"),
              text_member(*it, "attribute"),
              text_member(*it, "kind"),
              text_member(*it, "type"),
              text_member(*it, "top"),
              flag_member(*it, "part"),
              flag_member(*it, "trains"),
              flag_member(*it, "own"),
              "",
              "",
              ""};
  if (const auto box = it->find("container"); box != it->end() && box->is_object()) {
    held.container = text_member(*box, "name");
    held.container_type = text_member(*box, "type");
    held.container_of = text_member(*box, "of");
  }
  return held;
}

std::optional<ModelFacts> read_model(const json& facts) {
  const auto it = facts.find("model");
  if (it == facts.end() || !it->is_object()) return std::nullopt;
  return ModelFacts{text_member(*it, "name"), text_member(*it, "type"), text_member(*it, "device")};
}

std::vector<Operand> read_operands(const json& facts) {
  std::vector<Operand> operands;
  const auto it = facts.find("operands");
  if (it == facts.end() || !it->is_array()) return operands;
  for (const json& entry : *it) {
    if (!entry.is_object()) continue;
    Operand operand{
        text_member(entry, "name"),  text_member(entry, "as"),     shape_member(entry),
        text_member(entry, "dtype"), text_member(entry, "device"), true,
        text_member(entry, "from"),  read_holder(entry),           flag_member(entry, "requires_grad")};
    if (const auto user = entry.find("user"); user != entry.end() && user->is_boolean()) {
      operand.user = user->get<bool>();
    }
    operands.push_back(std::move(operand));
  }
  return operands;
}

std::optional<ModuleFacts> read_module(const json& facts) {
  const auto it = facts.find("module");
  if (it == facts.end() || !it->is_object()) return std::nullopt;
  ModuleFacts module{text_member(*it, "name"), text_member(*it, "type"), json::object()};
  if (const auto attributes = it->find("attributes"); attributes != it->end() && attributes->is_object()) {
    module.attributes = *attributes;
  }
  return module;
}

std::int64_t integer_member(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<std::int64_t>() : 0;
}

std::optional<PositionTable> read_position(const json& facts) {
  const auto it = facts.find("position");
  if (it == facts.end() || !it->is_object()) return std::nullopt;
  PositionTable table{integer_member(*it, "rows"),   integer_member(*it, "offset"),
                      integer_member(*it, "length"), text_member(*it, "name"),
                      text_member(*it, "setting"),   integer_member(*it, "value")};
  if (table.value <= 0) table.value = table.rows;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (table.offset < 0 || table.rows <= table.offset || table.rows > kMost || table.length > kMost) {
    return std::nullopt;
  }
  return table;
}

std::vector<std::string> texts_member(const json& object, const char* key) {
  std::vector<std::string> list;
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) return list;
  constexpr std::size_t kMost = 256;
  for (const json& text : *it) {
    if (text.is_string() && list.size() < kMost) list.push_back(text.get<std::string>());
  }
  return list;
}

LibraryFact read_library(const json& facts) {
  const auto it = facts.find("library");
  if (it == facts.end() || !it->is_object()) return {};
  return {text_member(*it, "caller"), text_member(*it, "owner"), text_member(*it, "maker"),
          texts_member(*it, "owners"), texts_member(*it, "callers")};
}

std::string read_functional(const json& facts) {
  const auto stack = facts.find("stack");
  if (stack == facts.end() || !stack->is_array()) return {};
  for (const json& frame : *stack) {
    if (std::string_view(text_member(frame, "file")).ends_with("torch/nn/functional.py")) {
      const std::string function = text_member(frame, "function");
      return function.substr(std::min(function.find_first_not_of('_'), function.size()));
    }
  }
  return {};
}

std::vector<std::string> read_files(const json& facts) {
  std::vector<std::string> files;
  const auto stack = facts.find("stack");
  if (stack == facts.end() || !stack->is_array()) return files;
  for (const json& frame : *stack) files.push_back(text_member(frame, "file"));
  return files;
}

// Positions of `to`'s dimensions in `from` when one is a permutation of the other, keeping equal sizes in
// order.
std::optional<std::vector<std::size_t>> permutation(const Shape& from, const Shape& to) {
  if (from.size() != to.size()) return std::nullopt;
  std::vector<bool> used(from.size(), false);
  std::vector<std::size_t> order;
  for (const std::int64_t size : to) {
    std::size_t d = 0;
    while (d < from.size() && (used[d] || from[d] != size)) ++d;
    if (d == from.size()) return std::nullopt;
    used[d] = true;
    order.push_back(d);
  }
  return order;
}

}  // namespace

std::optional<std::int64_t> ModuleFacts::attribute(std::string_view key) const {
  const auto it = attributes.find(std::string(key));
  if (it == attributes.end() || !it->is_number_integer()) return std::nullopt;
  return it->get<std::int64_t>();
}

std::string ModuleFacts::text() const {
  std::string label = type.empty() ? "module" : type;
  const auto in = attribute("in_features"), out = attribute("out_features");
  const auto in_channels = attribute("in_channels"), out_channels = attribute("out_channels");
  if (in && out)
    label += fmt::format("({}, {})", *in, *out);
  else if (in_channels && out_channels)
    label += fmt::format("({}, {})", *in_channels, *out_channels);
  else if (const auto features = attribute("num_features"))
    label += fmt::format("({})", *features);
  return name.empty() ? label : fmt::format("`{}` {}", name, label);
}

HostCase::HostCase(const json& facts, std::vector<std::string> captures)
    : facts_(&facts), captures_(std::move(captures)) {
  if (!facts.is_object()) return;
  operands_ = read_operands(facts);
  module_ = read_module(facts);
  model_ = read_model(facts);
  position_ = read_position(facts);
  library_ = read_library(facts);
  call_ = text_member(facts, "call");
  message_ = text_member(facts, "message");
  functional_ = read_functional(facts);
  files_ = read_files(facts);
  read_raiser(facts);
}

void HostCase::read_raiser(const json& facts) {
  const auto stack = facts.find("stack");
  if (stack == facts.end() || !stack->is_array()) return;
  for (auto frame = stack->rbegin(); frame != stack->rend(); ++frame) {
    if (!frame->is_object()) continue;
    const std::string file = text_member(*frame, "file");
    if (file.find("/torch/") != std::string::npos || file.starts_with("torch/")) continue;
    const auto user = frame->find("user");
    raised_in_library_ = user != frame->end() && user->is_boolean() && !user->get<bool>();
    raised_at_ = text_member(*frame, "code");
    return;
  }
}

bool HostCase::passes_through(std::string_view file_suffix) const {
  return std::any_of(files_.begin(), files_.end(),
                     [&](const std::string& file) { return std::string_view(file).ends_with(file_suffix); });
}

const std::string& HostCase::capture(std::size_t group) const {
  static const std::string none;
  return group >= 1 && group <= captures_.size() ? captures_[group - 1] : none;
}

std::int64_t HostCase::number(std::size_t group) const {
  const Shape numbers = shape(group);
  return numbers.empty() ? 0 : numbers.front();
}

Shape HostCase::shape(std::size_t group) const { return parse_shape(capture(group)); }

const Operand* HostCase::by_role(std::string_view role) const {
  const auto it = std::find_if(operands_.begin(), operands_.end(),
                               [&](const Operand& operand) { return operand.role == role; });
  return it == operands_.end() ? nullptr : &*it;
}

const Operand* HostCase::by_shape(const Shape& shape) const {
  const auto it = std::find_if(operands_.begin(), operands_.end(),
                               [&](const Operand& operand) { return operand.shape == shape; });
  return it == operands_.end() ? nullptr : &*it;
}

const Operand* HostCase::find(std::string_view role, const Shape& shape) const {
  const Operand* operand = by_role(role);
  return operand != nullptr ? operand : by_shape(shape);
}

std::string HostCase::name(std::string_view role, const Shape& shape, std::string_view fallback) const {
  const Operand* operand = find(role, shape);
  return operand == nullptr || operand->name.empty() ? std::string(fallback) : operand->name;
}

std::string HostCase::name(std::string_view role, std::string_view fallback) const {
  const Operand* operand = by_role(role);
  return operand == nullptr || operand->name.empty() ? std::string(fallback) : operand->name;
}

std::string HostCase::call_or(std::string_view fallback) const {
  return call_.empty() ? std::string(fallback) : call_;
}

std::string clip(std::string_view text, std::size_t length) {
  if (text.size() <= length) return std::string(text);
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  return std::string(text.substr(0, length));
}

std::string to_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Shape parse_shape(std::string_view text) {
  Shape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error == std::errc()) shape.push_back(value);
    at = next == at ? at + 1 : next;
  }
  return shape;
}

std::int64_t numel(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) return std::numeric_limits<std::int64_t>::max();
  }
  return count;
}

std::string call_that_fits(std::string_view name, const Shape& from, const Shape& to) {
  if (from == to || numel(from) != numel(to)) return {};
  if (from.size() == to.size() + 1) {
    for (std::size_t d = from.size(); d-- > 0;) {
      Shape without = from;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(d));
      if (from[d] == 1 && without == to) return fmt::format("{}.squeeze({})", name, d);
    }
  }
  if (from.size() + 1 == to.size()) {
    for (std::size_t d = to.size(); d-- > 0;) {
      Shape without = to;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(d));
      if (to[d] == 1 && without == from) return fmt::format("{}.unsqueeze({})", name, d);
    }
  }
  if (const auto order = permutation(from, to)) {
    if (from.size() == 2) return fmt::format("{}.t()", name);
    return fmt::format("{}.permute({})", name, fmt::join(*order, ", "));
  }
  if (from.size() > to.size() && to.size() >= 2 && from.front() == to.front()) {
    return fmt::format("{}.flatten({})", name, to.size() - 1);
  }
  return fmt::format("{}.reshape({})", name, fmt::join(to, ", "));
}

}  // namespace trapline
