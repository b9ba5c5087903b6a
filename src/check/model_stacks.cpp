// The rule for lists of layers. Which setting is the length of which list is known from stacks.def alone: a
// second number in a name may count anything (a stack of convolutions, groups that share their weights, a
// head's parts).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "check/model_parts.hpp"

namespace trapline::check {
namespace {

struct StackRow {
  std::string_view setting, stack, families;
};
constexpr StackRow kStacks[] = {
#define TRAPLINE_STACK(setting, stack, families) {setting, stack, families},
#include "check/stacks.def"
#undef TRAPLINE_STACK
};

bool holds(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find('|'), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// Of positions and layers: what is beyond is neither, and sums with it stay in range.
constexpr std::int64_t kMaxNumber = std::int64_t{1} << 40U;

// The numbers of the layers in the list: {0, 1} of "model.layers.0.fc.weight", "model.layers.1.fc.weight".
std::set<std::int64_t> numbers_of(const Model& model, std::string_view stack) {
  std::set<std::int64_t> numbers;
  for (const Tensor& tensor : model.tensors) {
    std::string_view name = tensor.name;
    if (!name.starts_with(stack) || name.size() <= stack.size() || name[stack.size()] != '.') continue;
    name.remove_prefix(stack.size() + 1);
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc{} && number >= 0 && number < kMaxNumber && stop != name.data() + name.size() &&
        *stop == '.') {
      numbers.insert(number);
    }
  }
  return numbers;
}

}  // namespace

void check_layers(const Model& model, std::vector<Finding>& findings) {
  const std::string type = model.type();
  // Layers that predict further tokens stand behind the others and are left out when the model is loaded.
  const std::int64_t more =
      std::clamp<std::int64_t>(setting(model.config, "num_nextn_predict_layers").value_or(0), 0, kMaxNumber);
  for (const StackRow& row : kStacks) {
    if (!holds(row.families, type)) continue;
    const auto says = setting(model.config, row.setting);
    if (!says || *says <= 0 || *says > kMaxNumber) continue;
    const std::set<std::int64_t> numbers = numbers_of(model, row.stack);
    if (numbers.empty()) continue;
    if (*numbers.rbegin() >= *says + more) {
      findings.push_back(
          model_finding(Cause::kShapeMismatch, model.path("config.json"),
                        fmt::format("{} is {}, but the weights have a layer `{}.{}`", row.setting, *says,
                                    row.stack, *numbers.rbegin()),
                        {fmt::format("set {} to {}: the layers beyond are skipped without an error",
                                     row.setting, *numbers.rbegin() + 1 - more)}));
      continue;
    }
    std::int64_t missing = 0;
    while (numbers.contains(missing)) ++missing;
    if (missing >= *says) continue;
    findings.push_back(
        model_finding(Cause::kIncompleteCheckpoint, model.path("config.json"),
                      fmt::format("{} is {}, but no file holds the weights of `{}.{}`: they would be random",
                                  row.setting, *says, row.stack, missing),
                      {"save or download the weights again"}));
  }
}

}  // namespace trapline::check
