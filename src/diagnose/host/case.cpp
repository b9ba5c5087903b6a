#include "diagnose/host/case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace trapline::diagnose {
namespace {

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
  const auto it = attributes.find(key);
  return it == attributes.end() ? std::nullopt : std::optional(it->second);
}

std::optional<std::int64_t> SelectionFact::size() const {
  if (!tensor || !dim) return std::nullopt;
  const auto dims = static_cast<std::int64_t>(tensor->shape.size());
  if (dims == 0) return 1;
  const std::int64_t at = *dim < 0 ? *dim + dims : *dim;
  return at < 0 || at >= dims ? std::nullopt : std::optional(tensor->shape[static_cast<std::size_t>(at)]);
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

std::string HostCase::functional() const {
  for (const Frame& frame : facts_->stack) {
    if (!std::string_view(frame.file).ends_with("torch/nn/functional.py")) continue;
    return frame.function.substr(std::min(frame.function.find_first_not_of('_'), frame.function.size()));
  }
  return {};
}

bool HostCase::passes_through(std::string_view file_suffix) const {
  return std::ranges::any_of(
      facts_->stack, [&](const Frame& frame) { return std::string_view(frame.file).ends_with(file_suffix); });
}

const Frame* HostCase::raiser() const {
  for (auto frame = facts_->stack.rbegin(); frame != facts_->stack.rend(); ++frame) {
    const bool torch = frame->file.find("/torch/") != std::string::npos || frame->file.starts_with("torch/");
    // A subclass of Tensor that only hands the call on: MetaTensor, TwoTensor.
    const bool handed_on =
        frame->function.ends_with("__torch_function__") || frame->function.ends_with("__torch_dispatch__");
    if (!torch && !handed_on) return &*frame;
  }
  return nullptr;
}

bool HostCase::raised_in_library() const {
  const Frame* frame = raiser();
  return frame != nullptr && !frame->user.value_or(true);
}

std::string HostCase::as_before(std::string_view input, std::string_view size) const {
  const std::string layer =
      module() && !module()->name.empty() ? layer_name(module()->name, '`') : "the layer";
  if (facts_->in_hand && facts_->in_hand->by != "hand") {
    return fmt::format(
        "the batches before had another size: bring this one to theirs (crop, pad or resize), so that {} "
        "gets "
        "{}",
        layer, size);
  }
  if (!module() || !module()->trained) return {};
  return fmt::format("{} was trained with {}: give the model {} of the size that it was trained with", layer,
                     size, input);
}

std::string HostCase::make_fit(const std::string& call, std::string_view input) const {
  std::string before = as_before(input, "its own size");
  if (!before.empty()) return before;
  if (!raised_in_library() && library().owner.empty()) return fmt::format("make the layer fit: `{}`", call);
  const std::string layer =
      module() && !module()->name.empty() ? layer_name(module()->name, '`') : "the layer";
  return fmt::format(
      "{} is part of a library's model: give that model {} of the size that it was made for, or "
      "make the model for this one",
      layer, input);
}

std::string HostCase::raised_at() const {
  const Frame* frame = raiser();
  return frame == nullptr ? std::string() : frame->code;
}

std::string strides_advice(const HostCase& host_case, std::int64_t one, std::int64_t other) {
  const std::int64_t small = std::min(one, other), large = std::max(one, other);
  constexpr std::int64_t kMaxStride = 64;
  if (!host_case.raised_in_library() || small < 2) return {};
  for (std::int64_t stride = 2; stride <= kMaxStride && stride < large; stride *= 2) {
    if (large != (small + stride - 1) / stride * stride || small % stride == 0) continue;
    return fmt::format(
        "if the model goes down by strides and up again: its input needs sizes that are multiples of all its "
        "strides together ({} comes back as {}): pad or crop the input",
        small, large);
  }
  return {};
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
  const auto it = std::find_if(operands().begin(), operands().end(),
                               [&](const Operand& operand) { return operand.role == role; });
  return it == operands().end() ? nullptr : &*it;
}

const Operand* HostCase::by_shape(const Shape& shape) const {
  const auto it = std::find_if(operands().begin(), operands().end(),
                               [&](const Operand& operand) { return operand.shape == shape; });
  return it == operands().end() ? nullptr : &*it;
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

std::string HostCase::given() const {
  constexpr std::size_t kMax = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(facts_->given.size(), kMax); ++i)
    text += (i == 0 ? ": " : ", ") + facts_->given[i].name + " " + to_text(facts_->given[i].shape);
  return text;
}

std::string HostCase::call_or(std::string_view fallback) const {
  return call().empty() ? std::string(fallback) : call();
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

}  // namespace trapline::diagnose
