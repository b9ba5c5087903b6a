// Folders of adapters (PEFT): adapter_config.json and adapter_model.*. What does not fit fails or is left
// random when PeftModel.from_pretrained loads it (set_peft_model_state_dict: load_state_dict(strict=False),
// sizes must agree).
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "check/bounded_json.hpp"
#include "check/model_parts.hpp"
#include "jsonio/access.hpp"

namespace trapline::check {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kPrefix = "base_model.model.";
struct PairNames {
  std::string_view first, second;
};
constexpr PairNames kPairs[] = {{".lora_A.weight", ".lora_B.weight"},
                                {".lora_embedding_A", ".lora_embedding_B"}};

class Adapter {
 public:
  Adapter(const Model& model, json config, std::vector<Error>& problems)
      : model_(model), config_(std::move(config)) {
    for (const Tensor& tensor : model.tensors) tensors_.emplace(tensor.name, &tensor);
    read_base(problems);
  }

  std::vector<Finding> look() {
    if (model_.tensors.empty()) return std::move(findings_);
    for (const auto& [name, tensor] : tensors_) look_at(name, *tensor);
    vocabulary();
    return std::move(findings_);
  }

 private:
  // Where the base model is a folder here; a name of a hub is not looked for.
  void read_base(std::vector<Error>& problems) {
    const std::string name = jsonio::text(config_, "base_model_name_or_path");
    std::error_code ignored;
    for (const fs::path& place : {fs::path(name), fs::path(model_.folder) / name}) {
      if (name.empty() || !fs::is_regular_file(place / "config.json", ignored)) continue;
      if (fs::equivalent(place, model_.folder, ignored)) continue;
      Result<Model> read = read_model(place.string(), problems);
      if (read) base_ = std::move(read).value();
      return;
    }
  }

  void add(Cause cause, std::string summary, std::vector<std::string> fixes, const std::string& file) {
    findings_.push_back(model_finding(cause, file, std::move(summary), std::move(fixes)));
  }

  void look_at(const std::string& name, const Tensor& tensor) {
    for (const PairNames& pair : kPairs) {
      for (const bool second : {false, true}) {
        const std::string_view here = second ? pair.second : pair.first;
        if (!name.ends_with(here)) continue;
        const std::string module = name.substr(0, name.size() - here.size());
        const std::string other = module + std::string(second ? pair.first : pair.second);
        const auto found = tensors_.find(other);
        if (found == tensors_.end()) {
          add(Cause::kIncompleteCheckpoint,
              fmt::format("it holds `{}`, but not `{}`: that one would be {}", name, other,
                          second ? "random" : "zero, and the adapter without effect"),
              {"save or download the adapter again"}, tensor.file);
        } else if (!second) {
          fits(module, tensor, *found->second, pair.first.find("embedding") != std::string_view::npos);
        }
        return;
      }
    }
    saved_whole(name, tensor);
  }

  // A module that is saved beside the adapter takes the place of the base model's (modules_to_save).
  void saved_whole(const std::string& name, const Tensor& tensor) {
    const Tensor* table = base_ ? base_->token_table() : nullptr;
    const Tensor* weight = base_ ? base_->find(in_base(name)) : nullptr;
    if (weight == nullptr || weight == table || told_whole_ || weight->sizes == tensor.sizes) return;
    if (weight->sizes.size() != 2 || tensor.sizes.size() != 2 || tensor.sizes[1] != weight->sizes[1]) return;
    told_whole_ = true;
    add(Cause::kNumClassesMismatch,
        fmt::format("it holds `{}` with {} rows, but the base model's has {}: PEFT refuses to load it",
                    in_base(name), tensor.rows(), weight->rows()),
        {fmt::format("load the base model with num_labels={}, ignore_mismatched_sizes=True", tensor.rows()),
         fmt::format(
             "or set base_model_name_or_path to the model that the adapter was trained on (it is {} now)",
             base_->folder)},
        tensor.file);
  }

  void fits(const std::string& module, const Tensor& a, const Tensor& b, bool embedding) {
    if (a.sizes.size() != 2 || b.sizes.size() != 2) return;
    const auto rank = jsonio::integer(config_, "r");
    if (a.sizes[0] != b.sizes[1]) {
      add(Cause::kShapeMismatch,
          fmt::format("`{}` has rank {}, but `{}` has {}", a.name, a.sizes[0], b.name, b.sizes[1]),
          {"save or download the adapter again: both were not made together"}, a.file);
      return;
    }
    const auto pattern = config_.find("rank_pattern");
    const bool one_rank = pattern == config_.end() || !pattern->is_object() || pattern->empty();
    if (rank && one_rank && a.sizes[0] != *rank && !told_rank_) {
      told_rank_ = true;
      add(Cause::kShapeMismatch, fmt::format("r is {}, but `{}` has rank {}", *rank, a.name, a.sizes[0]),
          {fmt::format("set r to {}, or take the adapter_config.json that was saved with these weights",
                       a.sizes[0])},
          model_.path("adapter_config.json"));
    }
    if (!base_ || told_base_) return;
    const Tensor* weight = base_->find(in_base(module) + ".weight");
    if (weight == nullptr || weight->sizes.size() != 2 || !is_floating(weight->dtype)) return;
    std::int64_t out = weight->sizes[0], in = weight->sizes[1];
    const auto flag = config_.find("fan_in_fan_out");
    const bool turned = flag != config_.end() && flag->is_boolean() && flag->get<bool>();
    if (turned != embedding) std::swap(in, out);
    if (a.sizes[1] == in && b.sizes[0] == out) return;
    told_base_ = true;
    add(Cause::kShapeMismatch,
        fmt::format(
            "it was made for a layer of {} inputs and {} outputs at `{}`, but the base model's has {} and {}",
            a.sizes[1], b.sizes[0], in_base(module), in, out),
        {fmt::format(
            "set base_model_name_or_path to the model that the adapter was trained on (it is {} now)",
            base_->folder)},
        a.file);
  }

  static std::string in_base(std::string_view module) {
    if (module.starts_with(kPrefix)) module.remove_prefix(kPrefix.size());
    return std::string(module);
  }

  // The table that ids meet: the adapter's own where it was saved with it, else the base model's.
  void vocabulary() {
    if (!base_) return;
    Model joined;
    joined.folder = model_.folder;
    joined.config = base_->config;
    joined.tokenizer = model_.tokenizer;
    joined.tensors = model_.tensors;
    const Tensor* own = joined.token_table();
    const Tensor* table = base_->token_table();
    if (own != nullptr && table != nullptr && own->rows() != table->rows() && model_.tokenizer.file.empty()) {
      add(Cause::kShapeMismatch,
          fmt::format("`{}` has {} rows, but the base model's table has {}", own->name, own->rows(),
                      table->rows()),
          {fmt::format(
               "model.resize_token_embeddings({}) on the base model, before PeftModel.from_pretrained(...)",
               own->rows()),
           "or save the tokenizer beside the adapter: AutoPeftModel then makes the table as long as it is"},
          own->file);
      return;
    }
    if (own == nullptr) joined.tensors = base_->tensors;
    check_tokens(joined, findings_);
  }

  const Model& model_;
  json config_;
  std::optional<Model> base_;
  std::map<std::string, const Tensor*> tensors_;
  std::vector<Finding> findings_;
  bool told_rank_ = false, told_base_ = false, told_whole_ = false;
};

}  // namespace

std::vector<Finding> findings_of_adapter(const Model& model, std::vector<Error>& problems) {
  Result<json> config = read_json_object(model.path("adapter_config.json"));
  if (!config) {
    problems.push_back(config.error());
    return {};
  }
  return Adapter(model, std::move(config).value(), problems).look();
}

}  // namespace trapline::check
