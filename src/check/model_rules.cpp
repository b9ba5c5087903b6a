// What the files of a model folder must say of each other: one function per rule, one row per function.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "check/bounded_json.hpp"
#include "check/model.hpp"
#include "check/model_parts.hpp"
#include "diagnose/diagnose.hpp"
#include "jsonio/access.hpp"

namespace trapline::check {
namespace {

using nlohmann::json;
using Findings = std::vector<Finding>;

// Of positions and layers: what is beyond is neither, and sums with it stay in range.
constexpr std::int64_t kMaxNumber = std::int64_t{1} << 62U;

void add(Findings& findings, Cause cause, std::string source, std::string summary,
         std::vector<std::string> fixes, std::optional<Layer> layer = std::nullopt) {
  findings.push_back(
      model_finding(cause, std::move(source), std::move(summary), std::move(fixes), std::move(layer)));
}

void vocabulary(const Model& model, Findings& findings) {
  const Tensor* table = model.token_table();
  const auto size = jsonio::integer(model.config, "vocab_size");
  if (table == nullptr || !size ||
      std::min(*size, kMaxNumber) + family_of(model.type()).extra_tokens == table->rows())
    return;
  add(findings, Cause::kShapeMismatch, model.path("config.json"),
      fmt::format("vocab_size is {}, but `{}` has {} rows", *size, table->name, table->rows()),
      {fmt::format("set vocab_size to {}, the rows of the weights", table->rows()),
       "or, when tokens were added: model.resize_token_embeddings(len(tokenizer)), then "
       "model.save_pretrained(...)"},
      table_layer(*table));
}

void segments(const Model& model, Findings& findings) {
  const Tensor* table = model.find("token_type_embeddings.weight");
  const auto says = jsonio::integer(model.config, "type_vocab_size");
  if (table == nullptr || !says || !is_floating(table->dtype) || table->sizes.size() != 2) return;
  if (*says == table->rows()) return;
  add(findings, Cause::kShapeMismatch, model.path("config.json"),
      fmt::format("type_vocab_size is {}, but `{}` has {} row{}", *says, table->name, table->rows(),
                  table->rows() == 1 ? "" : "s"),
      {fmt::format("set type_vocab_size to {}: token_type_ids are then 0 to {}", table->rows(),
                   table->rows() - 1)},
      table_layer(*table));
}

// "eos_token_id": 2, or [2, 3]; also the lists of ids that generation forces or forbids.
void named_ids(const Model& model, const json& object, const char* file, Findings& findings) {
  const auto rows = model.rows_of_tokens();
  if (!rows || !object.is_object()) return;
  const auto look = [&](const std::string& name, const json& value) {
    if (!value.is_number_integer()) return;
    const std::int64_t id = saturated(value);
    if (id < 0 || id >= *rows) add_id(findings, model, {file, name, id}, 1, id);
  };
  for (const auto& [name, value] : object.items()) {
    const bool list = name == "suppress_tokens" || name == "begin_suppress_tokens" || name == "bad_words_ids";
    if (!name.ends_with("_token_id") && !list) continue;
    if (value.is_array()) {
      const std::size_t before = findings.size();
      for (const json& one : value) {
        look(name, one);
        if (findings.size() > before) break;  // one finding for the list
      }
    } else {
      look(name, value);
    }
  }
}

void special_ids(const Model& model, Findings& findings) {
  const std::size_t before = findings.size();
  named_ids(model, model.config, "config.json", findings);
  std::set<std::string> told;
  for (std::size_t i = before; i < findings.size(); ++i) told.insert(findings[i].argument);
  Findings more;
  named_ids(model, model.generation, "generation_config.json", more);
  for (Finding& finding : more) {
    if (!told.contains(finding.argument)) findings.push_back(std::move(finding));
  }
}

void positions(const Model& model, Findings& findings) {
  const Tensor* table = model.position_table();
  if (table == nullptr) return;
  const Positions family = *positions_of(model.type());
  const std::string key(family.setting);
  const auto says = jsonio::integer(model.config, key.c_str());
  if (says && *says != table->rows() - family.extra_rows) {
    add(findings, Cause::kShapeMismatch, model.path("config.json"),
        fmt::format("{} is {}, which needs {} rows, but `{}` has {}", key, *says,
                    std::min(*says, kMaxNumber) + family.extra_rows, table->name, table->rows()),
        {fmt::format("set {} to {}", key, table->rows() - family.extra_rows)}, table_layer(*table));
  }
  const auto longest = model.longest_sequence();
  const auto cut = model.tokenizer.longest;
  if (cut && longest && *cut > *longest) {
    add(findings, Cause::kPositionIndexOutOfRange, model.path("tokenizer_config.json"),
        fmt::format("model_max_length is {}, but the position table `{}` has room for {} tokens{}", *cut,
                    table->name, *longest,
                    family.unused_rows > 0 ? fmt::format(" ({} of its {} rows are never used)",
                                                         family.unused_rows, table->rows())
                                           : ""),
        {fmt::format("set model_max_length to {}: truncation=True then cuts where the table ends", *longest)},
        table_layer(*table));
    findings.back().device_assert = true;
  }
}

// Its classes are those of the config: other heads of that name (of choices, of speakers) have other sizes.
bool classifies(const Model& model) {
  const auto names = model.config.find("architectures");
  return names != model.config.end() && names->is_array() &&
         std::ranges::any_of(*names, [](const json& name) {
           return name.is_string() && name.get_ref<const std::string&>().ends_with("Classification");
         });
}

void classes(const Model& model, Findings& findings) {
  const Tensor* head = model.head();
  const std::int64_t named = model.named_classes();
  const auto number = jsonio::integer(model.config, "num_labels");
  const bool judged = head != nullptr && (classifies(model) || !model.config.contains("architectures"));
  if (named > 0 && number && *number != named) {
    add(findings, Cause::kNumClassesMismatch, model.path("config.json"),
        fmt::format("num_labels is {}, but id2label names {} classes: loading the config fails", *number,
                    named),
        {"remove num_labels: transformers counts id2label"},
        judged ? std::optional(head_layer(*head)) : std::nullopt);
    return;
  }
  if (judged && named > 0 && named != head->rows()) {
    add(findings, Cause::kNumClassesMismatch, model.path("config.json"),
        fmt::format("id2label names {} classes, but `{}` has {} outputs", named, head->name, head->rows()),
        {"from_pretrained(..., num_labels=..., ignore_mismatched_sizes=True) makes a new head, to be trained",
         fmt::format("or name as many classes as the head has: {}", head->rows())},
        head_layer(*head));
    return;
  }
  // Without id2label transformers takes num_labels, and without that 2.
  if (head != nullptr && classifies(model) && named == 0 && number.value_or(2) != head->rows()) {
    add(findings, Cause::kNumClassesMismatch, model.path("config.json"),
        fmt::format("{}, but `{}` has {} outputs",
                    number ? fmt::format("num_labels is {}", *number)
                           : std::string("it has no id2label, which means 2 classes"),
                    head->name, head->rows()),
        {fmt::format("name the {} classes in id2label and label2id, or load with num_labels={}", head->rows(),
                     head->rows())},
        head_layer(*head));
    return;
  }
  const auto ids = model.config.find("label2id");
  const std::int64_t most = judged ? head->rows() : named;
  if (ids == model.config.end() || !ids->is_object() || most == 0) return;
  for (const auto& [name, id] : ids->items()) {
    if (!id.is_number_integer()) continue;
    const std::int64_t given = saturated(id);
    if (given >= 0 && given < most) continue;
    add(findings, Cause::kLabelOutOfRange, model.path("config.json"),
        fmt::format("label2id gives '{}' the label {}, but there are {} classes: valid labels are [0, {})",
                    name, given, most, most),
        {"number the classes from 0 without a gap, in label2id and id2label"});
    findings.back().device_assert = true;
    return;
  }
}

// timm's config.json: the class of the model is made with num_classes outputs and loads its weights strictly.
void timm_classes(const Model& model, Findings& findings) {
  const auto number = jsonio::integer(model.config, "num_classes");
  const auto pretrained = model.config.find("pretrained_cfg");
  const auto arguments = model.config.find("model_args");
  if (!number || jsonio::text(model.config, "architecture").empty() || pretrained == model.config.end() ||
      !pretrained->is_object() || (arguments != model.config.end() && arguments->contains("num_classes")))
    return;
  const std::string layer = jsonio::text(*pretrained, "classifier");
  const auto head = std::ranges::find(model.tensors, layer + ".weight", &Tensor::name);
  const std::int64_t background = jsonio::integer(*pretrained, "label_offset").value_or(0);
  if (layer.empty() || *number <= 0 || head == model.tensors.end() || head->sizes.empty() ||
      head->rows() == std::min(*number, kMaxNumber) + std::clamp<std::int64_t>(background, 0, 1))
    return;
  add(findings, Cause::kNumClassesMismatch, model.path("config.json"),
      fmt::format("num_classes is {}, but `{}` has {} outputs", *number, head->name, head->rows()),
      {fmt::format("set num_classes to {}, or take the weights that were saved with this config",
                   head->rows()),
       "timm.create_model(..., num_classes=...) makes a new head, to be trained"},
      head_layer(*head));
}

bool generates(const Model& model) {
  const auto names = model.config.find("architectures");
  return names != model.config.end() && names->is_array() &&
         std::ranges::any_of(*names, [](const json& name) {
           return name.is_string() && (name.get_ref<const std::string&>().ends_with("ForCausalLM") ||
                                       name.get_ref<const std::string&>().ends_with("LMHeadModel"));
         });
}

// The table by any name: as long as the vocabulary, or called an embedding of something else than positions.
bool may_be_token_table(const Tensor& tensor, std::int64_t vocabulary) {
  const bool long_enough = std::ranges::find(tensor.sizes, vocabulary) != tensor.sizes.end();
  const auto has = [&](std::string_view word) { return tensor.name.find(word) != std::string::npos; };
  return long_enough || ((has("embed") || has("wte") || has("word")) && !has("pos") && !has("rotary"));
}

void token_table_lost(const Model& model, Findings& findings) {
  const auto vocabulary = jsonio::integer(model.config, "vocab_size");
  const auto flag = model.config.find("tie_word_embeddings");
  const bool untied = flag != model.config.end() && flag->is_boolean() && !flag->get<bool>();
  const bool told = std::ranges::any_of(
      findings, [](const Finding& one) { return one.cause == Cause::kIncompleteCheckpoint; });
  if (told || !vocabulary || model.tensors.empty() || !generates(model) || !untied || model.quantized())
    return;
  const Tensor* output = model.find("lm_head.weight");
  if (output == nullptr || output->sizes.size() != 2 || output->rows() != *vocabulary) return;
  if (std::ranges::any_of(model.tensors, [&](const Tensor& one) {
        return !one.name.starts_with("lm_head.") && may_be_token_table(one, *vocabulary);
      }))
    return;
  add(findings, Cause::kIncompleteCheckpoint, model.path("config.json"),
      fmt::format("vocab_size is {}, but no file holds a table of {} tokens besides `{}`, and "
                  "tie_word_embeddings is false: it would be random",
                  *vocabulary, *vocabulary, output->name),
      {"save or download the weights again",
       "set tie_word_embeddings to true if the model shares the table"});
}

void tied(const Model& model, Findings& findings) {
  const Tensor* table = model.token_table();
  const Tensor* output =
      model.find("lm_head.weight|predictions.decoder.weight|proj_out.weight|embed_out.weight");
  if (table == nullptr) return;
  const auto flag = model.config.find("tie_word_embeddings");
  const bool says = flag != model.config.end() && flag->is_boolean();
  const bool plain = output != nullptr && output->sizes.size() == 2 && is_floating(output->dtype) &&
                     output->sizes[1] == table->sizes[1];
  if (plain && output->rows() + family_of(model.type()).extra_tokens != table->rows()) {
    const bool is_tied = says && flag->get<bool>();
    add(findings, Cause::kShapeMismatch, output->file,
        fmt::format("`{}` has {} rows, but `{}` has {}{}", output->name, output->rows(), table->name,
                    table->rows(), is_tied ? ", and the config ties them" : ""),
        {"model.resize_token_embeddings(len(tokenizer)) changes both; then model.save_pretrained(...)"},
        table_layer(*table));
    return;
  }
  // A head by another name, or packed: no other tensor may be as long as the table.
  const bool other = std::ranges::any_of(model.tensors, [&](const Tensor& one) {
    const bool long_enough = one.sizes.size() == 2 && &one != table &&
                             (one.rows() == table->rows() || one.sizes[1] == table->rows());
    return long_enough || one.name.find("lm_head") != std::string::npos;
  });
  if (output == nullptr && !other && says && !flag->get<bool>()) {
    if (!generates(model)) return;
    add(findings, Cause::kIncompleteCheckpoint, model.path("config.json"),
        "tie_word_embeddings is false, but no file holds an output layer (lm_head.weight): it would be "
        "random",
        {"set tie_word_embeddings to true if the model shares its token table",
         "else save or download the weights again"});
  }
}

// What from_pretrained(folder) does not find.
void loadable(const Model& model, Findings& findings) {
  if (model.unnamed.empty()) return;
  const std::string& first = model.unnamed.front();
  const bool shard = first.find("-of-") != std::string::npos;
  const bool safe = first.ends_with(".safetensors");
  const std::string wanted = safe ? "model.safetensors" : "pytorch_model.bin";
  // Between the name and its end: "model.fp16.safetensors", "model.fp16-00001-of-00002.safetensors".
  const std::size_t from = first.find('.') + 1;
  const std::size_t to = first.find_first_of(".-", from);
  const bool variant =
      from > 0 && to != std::string::npos && first.find("-of-") > from && from < first.rfind('.');
  if (shard && !variant) {
    add(findings, Cause::kIncompleteCheckpoint, model.folder,
        fmt::format("it holds {} shard{} ({}{}), but no {}.index.json: from_pretrained finds no weights",
                    model.unnamed.size(), model.unnamed.size() == 1 ? "" : "s", first,
                    model.unnamed.size() > 1 ? ", ..." : "", wanted),
        {fmt::format("copy or download {}.index.json too: it says which file holds which tensor", wanted),
         "or save the model again: model.save_pretrained(...)"});
    return;
  }
  const std::string name = first.substr(from, to - from);
  add(findings, Cause::kIncompleteCheckpoint, model.folder,
      fmt::format("its weights are of the variant '{}' ({}): from_pretrained looks for {} and finds none",
                  name, first, wanted),
      {fmt::format("load it with from_pretrained(..., variant=\"{}\")", name),
       fmt::format("or save it without a variant, as {}", wanted)});
}

void shards(const Model& model, Findings& findings) {
  std::set<std::string> missing;
  std::set<std::pair<std::string, std::string>> there;
  for (const Tensor& tensor : model.tensors) there.emplace(tensor.name, tensor.file);
  const std::set<std::string> files(model.files.begin(), model.files.end());
  std::vector<std::string> lost;
  for (const auto& [tensor, file] : model.expected) {
    std::error_code ignored;
    if (!std::filesystem::exists(model.path(file), ignored)) {
      missing.insert(file);
    } else if (files.contains(model.path(file)) && !there.contains({tensor, model.path(file)})) {
      lost.push_back(tensor);
    }
  }
  const std::string again = "download or save the model again: every file that the index names is needed";
  if (!missing.empty()) {
    const auto of =
        std::ranges::count_if(model.expected, [&](const auto& one) { return missing.contains(one.second); });
    add(findings, Cause::kIncompleteCheckpoint, model.index,
        fmt::format("{} is not in the folder{}: {} of {} tensors are missing", *missing.begin(),
                    missing.size() > 1 ? fmt::format(", nor are {} more", missing.size() - 1) : "", of,
                    model.expected.size()),
        {again});
  }
  if (!lost.empty()) {
    add(findings, Cause::kIncompleteCheckpoint, model.index,
        fmt::format("it says where `{}` lies, but that file does not hold it{}", lost.front(),
                    lost.size() > 1 ? fmt::format(", and {} more", lost.size() - 1) : ""),
        {again});
  }
}

void width(const Model& model, Findings& findings) {
  const Tensor* table = model.token_table();
  if (table == nullptr || table->sizes.size() != 2) return;
  // A table of another width than the layers: its setting is one of these.
  for (const char* own : {"embedding_size", "word_embed_proj_dim", "input_embedding_size", "embed_dim"}) {
    if (model.config.contains(own)) return;
  }
  for (const char* key : {"hidden_size", "n_embd", "d_model", "dim"}) {
    const auto says = jsonio::integer(model.config, key);
    if (!says) continue;
    if (*says != table->sizes[1]) {
      add(findings, Cause::kShapeMismatch, model.path("config.json"),
          fmt::format("{} is {}, but `{}` has {} columns", key, *says, table->name, table->sizes[1]),
          {fmt::format("set {} to {}, or take the config that was saved with these weights", key,
                       table->sizes[1])},
          table_layer(*table));
    }
    return;
  }
}

void dtype(const Model& model, Findings& findings) {
  std::string says = jsonio::text(model.config, "dtype");
  if (says.empty()) says = jsonio::text(model.config, "torch_dtype");
  if (says.empty() || model.quantized()) return;
  std::map<std::string, std::int64_t> kinds;
  for (const Tensor& tensor : model.tensors) {
    if (is_floating(tensor.dtype)) ++kinds[std::string(name_of(tensor.dtype))];
  }
  if (kinds.empty() || kinds.contains(says)) return;
  const auto most = std::ranges::max_element(kinds, {}, [](const auto& one) { return one.second; });
  add(findings, Cause::kDtypeMismatch, model.path("config.json"),
      fmt::format("dtype is {}, but the weights are {}", says, most->first),
      {fmt::format("set dtype to {}; or convert the weights: model.to(torch.{}).save_pretrained(...)",
                   most->first, says),
       "float16 weights that were trained as bfloat16 overflow to Inf"});
}

using RuleFunction = void (*)(const Model&, Findings&);
constexpr std::array<RuleFunction, 14> kRules{
    loadable, shards,       vocabulary,       segments, check_tokens, special_ids, positions,
    classes,  timm_classes, token_table_lost, tied,     check_layers, width,       dtype};

}  // namespace

std::vector<Finding> findings_of(const Model& model) {
  Findings findings;
  for (const RuleFunction rule : kRules) rule(model, findings);
  return findings;
}

}  // namespace trapline::check
