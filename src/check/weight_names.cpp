#include "check/weight_names.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace trapline::check {
namespace {

// What torch.nn and PEFT call parameters and buffers, and Keras its variables.
constexpr std::string_view kWeights[] = {
    "weight",           "bias",   "running_mean", "running_var",      "lora_A",
    "lora_B",           "gamma",  "beta",         "moving_mean",      "moving_variance",
    "recurrent_kernel", "kernel", "embeddings",   "depthwise_kernel", "pointwise_kernel"};

// Where the weights of a checkpoint stand: torch.save({"model_state_dict": ...}) as PyTorch's tutorials and
// Lightning have it, model.save() of Keras 2.
constexpr std::string_view kAroundWeights[] = {"state_dict", "model_state_dict", "model_weights"};

// Where the state of an optimizer stands: PyTorch's tutorials, Lightning, accelerate, nanoGPT; Keras.
constexpr std::string_view kAroundOptimizers[] = {"optim",
                                                  "optimizer",
                                                  "optimizers",
                                                  "optimizer_state",
                                                  "optimizer_states",
                                                  "optimizer_state_dict",
                                                  "optim_state_dict",
                                                  "optimizer_weights"};

// What torch.optim keeps of a parameter, and nothing else is called.
constexpr std::string_view kOptimizers[] = {"exp_avg",         "exp_avg_sq", "max_exp_avg_sq", "exp_inf",
                                            "momentum_buffer", "square_avg", "grad_avg",       "acc_delta"};

template <std::size_t N>
bool holds(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("./"), name.size());
    if (end > 0) parts.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return parts;
}

}  // namespace

std::string_view kept_as(std::string_view name) {
  const std::vector<std::string_view> parts = parts_of(name);
  if (parts.empty()) return {};
  const std::string_view last = parts.back().substr(0, parts.back().find(':'));  // "kernel:0"
  if (holds(kOptimizers, last)) return "optimizer";
  bool weights = holds(kWeights, last) || name.find(".weight") != name.npos;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (holds(kAroundOptimizers, parts[i])) return "optimizer";
    // Optimizer.state_dict(): {"state": {0: {"step": ..., "sum": ...}}, "param_groups": ...}.
    if (parts[i] == "state" && i + 2 < parts.size() && is_number(parts[i + 1])) return "optimizer";
    // A variable of a layer in a .weights.h5 of Keras 3: "layers/dense/vars/0".
    weights = weights || holds(kAroundWeights, parts[i]) || (parts[i] == "vars" && is_number(last));
  }
  return weights ? "weight" : std::string_view();
}

}  // namespace trapline::check
