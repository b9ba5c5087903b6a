// What the files of a model folder must say of each other: one function per rule, one row per function.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <set>

#include "check/bounded_json.hpp"
#include "check/model.hpp"
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
  Finding finding;
  finding.cause = cause;
  finding.certainty = Certainty::kDetermined;
  finding.device_assert = false;
  finding.summary = source + ": " + summary;
  finding.layer = std::move(layer);
  finding.fix = std::move(fixes);
  finding.evidence.push_back({std::move(source), std::nullopt, std::move(summary)});
  findings.push_back(std::move(finding));
}

// Ids that have no row in the table of tokens: the words are those of the guard.
void add_id(Findings& findings, const Model& model, const NamedId& id, std::int64_t bad,
            std::int64_t greatest) {
  const Tensor* table = model.token_table();
  const std::int64_t rows = model.rows_of_tokens().value_or(0);
  diagnose::Violation facts;
  facts.contract = find_contract("check_ids.ids");
  facts.source = model.path(id.file);
  facts.column = id.name;
  facts.table = "token";
  facts.scan.bad = facts.scan.total = bad;
  facts.scan.value = id.id;
  facts.scan.max = greatest;
  facts.scan.hi = rows;
  facts.scan.reason = id.id < 0 ? Reason::kBelow : Reason::kAbove;
  if (id.name.ends_with("_token_id")) facts.special_ids = {{id.name, id.id}};
  if (table != nullptr) facts.layer = table_layer(*table);
  facts.places = {{{model.path(id.file), 0, {}, 0}, id.id}};
  Finding finding = diagnose::finding_of(facts);
  finding.element->total.reset();
  findings.push_back(std::move(finding));
}

void vocabulary(const Model& model, Findings& findings) {
  const Tensor* table = model.token_table();
  const auto size = jsonio::integer(model.config, "vocab_size");
  if (table == nullptr || !size || *size == table->rows()) return;
  add(findings, Cause::kShapeMismatch, model.path("config.json"),
      fmt::format("vocab_size is {}, but `{}` has {} rows", *size, table->name, table->rows()),
      {fmt::format("set vocab_size to {}, the rows of the weights", table->rows()),
       "or, when tokens were added: model.resize_token_embeddings(len(tokenizer)), then "
       "model.save_pretrained(...)"},
      table_layer(*table));
}

void tokens(const Model& model, Findings& findings) {
  const auto rows = model.rows_of_tokens();
  if (!rows) return;
  std::vector<NamedId> beyond;
  for (const auto* list : {&model.tokenizer.ids, &model.tokenizer.absent}) {
    for (const NamedId& id : *list) {
      if (id.id >= *rows || id.id < 0) beyond.push_back(id);
    }
  }
  if (beyond.empty()) return;
  const auto least = std::ranges::min_element(beyond, {}, &NamedId::id);
  const auto most = std::ranges::max_element(beyond, {}, &NamedId::id);
  const auto count =
      std::max<std::int64_t>(static_cast<std::int64_t>(beyond.size()), model.tokenizer.size - *rows);
  add_id(findings, model, *least, count, most->id);
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
  const Family& family = family_of(model.type());
  const Tensor* table = model.position_table();
  if (table == nullptr) return;
  const std::string key(family.longest);
  const auto says = jsonio::integer(model.config, key.c_str());
  if (says && *says != table->rows() - family.extra_rows) {
    add(findings, Cause::kShapeMismatch, model.path("config.json"),
        fmt::format("{} is {}, which needs {} rows, but `{}` has {}", key, *says,
                    std::min(*says, kMaxNumber) + family.extra_rows, table->name, table->rows()),
        {fmt::format("set {} to {}", key, table->rows() - family.extra_rows)}, table_layer(*table));
  }
  const std::int64_t longest = *model.longest_sequence();
  const auto cut = model.tokenizer.longest;
  if (cut && *cut > longest) {
    add(findings, Cause::kPositionIndexOutOfRange, model.path("tokenizer_config.json"),
        fmt::format("model_max_length is {}, but the position table `{}` has room for {} tokens{}", *cut,
                    table->name, longest,
                    family.unused_rows > 0 ? fmt::format(" ({} of its {} rows are never used)",
                                                         family.unused_rows, table->rows())
                                           : ""),
        {fmt::format("set model_max_length to {}: truncation=True then cuts where the table ends", longest)},
        table_layer(*table));
    findings.back().device_assert = true;
  }
}

void classes(const Model& model, Findings& findings) {
  const Tensor* head = model.head();
  const std::int64_t named = model.named_classes();
  if (head != nullptr && named > 0 && named != head->rows()) {
    add(findings, Cause::kNumClassesMismatch, model.path("config.json"),
        fmt::format("id2label names {} classes, but `{}` has {} outputs", named, head->name, head->rows()),
        {"from_pretrained(..., num_labels=..., ignore_mismatched_sizes=True) makes a new head, to be trained",
         fmt::format("or name as many classes as the head has: {}", head->rows())},
        head_layer(*head));
    return;
  }
  const auto ids = model.config.find("label2id");
  const std::int64_t most = head != nullptr ? head->rows() : named;
  if (ids == model.config.end() || !ids->is_object() || most == 0) return;
  for (const auto& [name, id] : ids->items()) {
    if (!id.is_number_integer()) continue;
    const std::int64_t number = saturated(id);
    if (number >= 0 && number < most) continue;
    add(findings, Cause::kLabelOutOfRange, model.path("config.json"),
        fmt::format("label2id gives '{}' the label {}, but there are {} classes: valid labels are [0, {})",
                    name, number, most, most),
        {"number the classes from 0 without a gap, in label2id and id2label"});
    findings.back().device_assert = true;
    return;
  }
}

void tied(const Model& model, Findings& findings) {
  const Tensor* table = model.token_table();
  const Tensor* output =
      model.find("lm_head.weight|predictions.decoder.weight|proj_out.weight|embed_out.weight");
  if (table == nullptr) return;
  const auto flag = model.config.find("tie_word_embeddings");
  const bool says = flag != model.config.end() && flag->is_boolean();
  if (output != nullptr && output->rows() != table->rows()) {
    const bool is_tied = says && flag->get<bool>();
    add(findings, Cause::kShapeMismatch, output->file,
        fmt::format("`{}` has {} rows, but `{}` has {}{}", output->name, output->rows(), table->name,
                    table->rows(), is_tied ? ", and the config ties them" : ""),
        {"model.resize_token_embeddings(len(tokenizer)) changes both; then model.save_pretrained(...)"},
        table_layer(*table));
    return;
  }
  if (output == nullptr && says && !flag->get<bool>()) {
    const auto names = model.config.find("architectures");
    const bool generates =
        names != model.config.end() && names->is_array() && std::ranges::any_of(*names, [](const json& name) {
          return name.is_string() && (name.get_ref<const std::string&>().ends_with("ForCausalLM") ||
                                      name.get_ref<const std::string&>().ends_with("LMHeadModel"));
        });
    if (!generates) return;
    add(findings, Cause::kIncompleteCheckpoint, model.path("config.json"),
        "tie_word_embeddings is false, but no file holds an output layer (lm_head.weight): it would be "
        "random",
        {"set tie_word_embeddings to true if the model shares its token table",
         "else save or download the weights again"});
  }
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

// Numbers of layers by what stands before them: {"model.layers": {0, 1}}.
std::map<std::string, std::set<std::int64_t>> layers_of(const Model& model) {
  std::map<std::string, std::set<std::int64_t>> stacks;
  for (const Tensor& tensor : model.tensors) {
    for (std::size_t dot = tensor.name.find('.'); dot != std::string::npos;
         dot = tensor.name.find('.', dot + 1)) {
      std::int64_t number = 0;
      const char* begin = tensor.name.data() + dot + 1;
      const auto [stop, error] = std::from_chars(begin, tensor.name.data() + tensor.name.size(), number);
      if (error != std::errc{} || number < 0 || number > kMaxNumber ||
          stop == tensor.name.data() + tensor.name.size() || *stop != '.')
        continue;
      const std::string stack = tensor.name.substr(0, dot);
      if (stack.ends_with("layers") || stack.ends_with("layer") || stack.ends_with(".h") || stack == "h" ||
          stack.ends_with("block")) {
        stacks[stack].insert(number);
        break;
      }
    }
  }
  return stacks;
}

void layers(const Model& model, Findings& findings) {
  for (const auto& [stack, numbers] : layers_of(model)) {
    const char* key = "num_hidden_layers";
    if (model.config.contains("n_layer")) key = "n_layer";
    if (model.config.contains("n_layers")) key = "n_layers";
    if (model.config.contains("num_layers")) key = "num_layers";
    const bool decodes = stack.find("decoder") != std::string::npos;
    if (decodes && model.config.contains("num_decoder_layers")) key = "num_decoder_layers";
    if (decodes && model.config.contains("decoder_layers")) key = "decoder_layers";
    if (!decodes && model.config.contains("encoder_layers")) key = "encoder_layers";
    const auto says = jsonio::integer(model.config, key);
    if (!says || *says <= 0) continue;
    if (*numbers.rbegin() >= *says) {
      add(findings, Cause::kShapeMismatch, model.path("config.json"),
          fmt::format("{} is {}, but the weights have a layer `{}.{}`", key, *says, stack, *numbers.rbegin()),
          {fmt::format("set {} to {}: the layers beyond are skipped without an error", key,
                       *numbers.rbegin() + 1)});
      continue;
    }
    for (std::int64_t i = 0; i < *says; ++i) {
      if (numbers.contains(i)) continue;
      add(findings, Cause::kIncompleteCheckpoint, model.path("config.json"),
          fmt::format("{} is {}, but no file holds the weights of `{}.{}`: they would be random", key, *says,
                      stack, i),
          {"save or download the weights again"});
      break;
    }
  }
}

void width(const Model& model, Findings& findings) {
  const Tensor* table = model.token_table();
  if (table == nullptr || table->sizes.size() != 2) return;
  if (model.config.contains("embedding_size") || model.config.contains("word_embed_proj_dim")) return;
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
  if (says.empty()) return;
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
constexpr std::array<RuleFunction, 10> kRules{shards,  vocabulary, tokens, special_ids, positions,
                                              classes, tied,       layers, width,       dtype};

}  // namespace

std::vector<Finding> findings_of(const Model& model) {
  Findings findings;
  for (const RuleFunction rule : kRules) rule(model, findings);
  return findings;
}

}  // namespace trapline::check
