#include "check/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "check/bounded_json.hpp"
#include "inputs/mapped_file.hpp"
#include "jsonio/access.hpp"

namespace trapline::check {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kFamilies = std::to_array<Family>({
#define TRAPLINE_FAMILY(type, tokens, positions, extra, unused, longest) \
  {type, tokens, positions, extra, unused, longest},
#include "check/families.def"
#undef TRAPLINE_FAMILY
});

constexpr std::string_view kHeads =
    "classifier.weight|classifier.out_proj.weight|score.weight|classification_head.out_proj.weight|"
    "classification_head.weight";
constexpr std::array kIndexNames{"model.safetensors.index.json", "pytorch_model.bin.index.json"};
constexpr std::array kWeightNames{"model.safetensors", "pytorch_model.bin"};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Only headers: the columns' names, dtypes and sizes.
class HeaderSink : public inputs::Sink {
 public:
  HeaderSink(std::vector<Tensor>& tensors, const std::string& file) : tensors_(tensors), file_(file) {}
  bool begin(const inputs::Column& column) override {
    tensors_.push_back({column.name, file_, column.dtype, column.sizes});
    return false;
  }
  bool piece(const inputs::Piece&) override { return false; }
  void malformed(const inputs::Column&, std::int64_t, std::int64_t, std::string_view) override {}

 private:
  std::vector<Tensor>& tensors_;
  const std::string& file_;
};

void read_header(const std::string& path, Model& model, std::vector<Error>& problems) {
  const Result<inputs::MappedFile> file = inputs::MappedFile::open(path);
  if (!file) {
    problems.push_back(file.error());
    return;
  }
  const inputs::Source source{path, file->bytes()};
  const inputs::Reader* reader = inputs::find_reader(source);
  if (reader == nullptr) {
    problems.push_back({"cannot check " + path, "its format is not known", "save the model as safetensors"});
    return;
  }
  HeaderSink sink(model.tensors, path);
  const Result<bool> read = reader->read(source, sink);
  if (!read) {
    problems.push_back(read.error());
    return;
  }
  model.files.push_back(path);
}

void read_weights(Model& model, std::vector<Error>& problems) {
  std::set<std::string> shards;
  for (const char* name : kIndexNames) {
    if (!is_file(model.path(name))) continue;
    const Result<json> index = read_json_object(model.path(name));
    if (!index) {
      problems.push_back(index.error());
      return;
    }
    model.index = model.path(name);
    const auto map = index->find("weight_map");
    if (map == index->end() || !map->is_object()) {
      problems.push_back({"cannot read " + model.index, "it has no weight_map", "save the model again"});
      return;
    }
    for (const auto& [tensor, file] : map->items()) {
      // A name with a folder in it could lead anywhere.
      if (!file.is_string() || file.get_ref<const std::string&>().find('/') != std::string::npos) continue;
      model.expected.emplace_back(tensor, file.get<std::string>());
      shards.insert(file.get<std::string>());
    }
    break;
  }
  if (model.index.empty()) {
    const auto* name =
        std::ranges::find_if(kWeightNames, [&](const char* one) { return is_file(model.path(one)); });
    if (name != kWeightNames.end()) shards.insert(*name);
  }
  for (const std::string& shard : shards) {
    if (is_file(model.path(shard))) read_header(model.path(shard), model, problems);
  }
}

void take_ids(const json& object, std::map<std::string, std::int64_t>& ids) {
  for (const auto& [name, value] : object.items()) {
    if (!name.ends_with("_token_id")) continue;
    if (const auto id = jsonio::integer(object, name.c_str()); id && *id >= 0) ids.emplace(name, *id);
  }
}

Layer layer_of(const Tensor& tensor, const char* type, const char* rows, const char* columns) {
  Layer layer;
  layer.name = tensor.name.ends_with(".weight") ? tensor.name.substr(0, tensor.name.size() - 7) : tensor.name;
  layer.type = type;
  layer.attribute = rows;
  layer.value = tensor.rows();
  if (tensor.sizes.size() == 2) {
    layer.arguments = type == std::string_view("Linear")
                          ? fmt::format("{}={}, {}={}", columns, tensor.sizes[1], rows, tensor.sizes[0])
                          : fmt::format("{}={}, {}={}", rows, tensor.sizes[0], columns, tensor.sizes[1]);
  }
  return layer;
}

}  // namespace

const Family& family_of(std::string_view model_type) {
  const auto* row = std::ranges::find(kFamilies, model_type, &Family::type);
  return row != kFamilies.end() ? *row : kFamilies.back();
}

Layer table_layer(const Tensor& table) {
  return layer_of(table, "Embedding", "num_embeddings", "embedding_dim");
}

Layer head_layer(const Tensor& head) { return layer_of(head, "Linear", "out_features", "in_features"); }

std::string Model::path(std::string_view name) const { return (fs::path(folder) / name).string(); }

std::string Model::type() const { return jsonio::text(config, "model_type"); }

const Tensor* Model::find(std::string_view suffixes) const {
  while (!suffixes.empty()) {
    const std::size_t end = std::min(suffixes.find('|'), suffixes.size());
    const std::string_view suffix = suffixes.substr(0, end);
    suffixes.remove_prefix(std::min(end + 1, suffixes.size()));
    for (const Tensor& tensor : tensors) {
      const std::string_view name = tensor.name;
      if (!name.ends_with(suffix)) continue;
      if (name.size() == suffix.size() || name[name.size() - suffix.size() - 1] == '.') return &tensor;
    }
  }
  return nullptr;
}

const Tensor* Model::token_table() const { return find(family_of(type()).tokens); }

const Tensor* Model::position_table() const {
  const Tensor* table = find(family_of(type()).positions);
  return table != nullptr && table->sizes.size() == 2 ? table : nullptr;
}

const Tensor* Model::head() const {
  const Tensor* tensor = find(kHeads);
  return tensor != nullptr && tensor->sizes.size() == 2 ? tensor : nullptr;
}

std::optional<std::int64_t> Model::longest_sequence() const {
  const Tensor* table = position_table();
  if (table == nullptr) return std::nullopt;
  return table->rows() - family_of(type()).unused_rows;
}

std::optional<std::int64_t> Model::rows_of_tokens() const {
  if (const Tensor* table = token_table()) return table->rows();
  const auto says = jsonio::integer(config, "vocab_size");
  return says && *says >= 0 ? says : std::nullopt;
}

std::int64_t Model::named_classes() const {
  const auto names = config.find("id2label");
  return names != config.end() && names->is_object() ? static_cast<std::int64_t>(names->size()) : 0;
}

std::optional<std::int64_t> Model::classes() const {
  if (const Tensor* tensor = head()) return tensor->rows();
  return named_classes() > 0 ? std::optional(named_classes()) : jsonio::integer(config, "num_labels");
}

std::map<std::string, std::int64_t> Model::special_ids() const {
  std::map<std::string, std::int64_t> ids;
  take_ids(config, ids);
  take_ids(generation, ids);
  return ids;
}

Result<Model> read_model(const std::string& folder, std::vector<Error>& problems) {
  Model model;
  model.folder = folder;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Error{"cannot check " + folder, "it is not a folder", "name the folder that holds config.json"};
  }
  if (!is_file(model.path("config.json"))) {
    return Error{"cannot check " + folder, "it holds no config.json",
                 "name the folder of a Hugging Face model"};
  }
  Result<json> config = read_json_object(model.path("config.json"));
  if (!config) return config.error();
  model.config = std::move(config).value();
  if (is_file(model.path("generation_config.json"))) {
    Result<json> generation = read_json_object(model.path("generation_config.json"));
    if (generation) {
      model.generation = std::move(generation).value();
    } else {
      problems.push_back(generation.error());
    }
  }
  model.tokenizer = read_tokenizer(folder, problems);
  read_weights(model, problems);
  return model;
}

Report check_model(const std::string& folder, const Job& job, std::vector<Error>& problems) {
  Report report;
  report.command = Command::kCheck;
  report.verdict = Verdict::kUnknown;
  const Result<Model> model = read_model(folder, problems);
  if (!model) {
    problems.push_back(model.error());
    return report;
  }
  Rule rule;
  rule.kind = RuleKind::kFinite;
  rule.weights = true;
  const std::vector<FileResult> weights = check_files(rule, {}, model->files, job);
  for (const FileResult& file : weights) {
    // A file of nothing but integers is no mistake here.
    if (file.error && !file.whole) problems.push_back(*file.error);
  }
  Report values = report_of(rule, weights);
  report.findings = findings_of(*model);
  std::ranges::move(values.findings, std::back_inserter(report.findings));
  report.notes = std::move(values.notes);
  report.checked = std::move(values.checked);
  if (model->files.empty()) report.notes.emplace_back("the folder holds no weights that can be read");
  if (model->tokenizer.file.empty()) report.notes.emplace_back("the folder holds no tokenizer");
  const bool all = std::ranges::all_of(weights, &FileResult::whole);
  report.verdict = !report.findings.empty() ? Verdict::kFault : all ? Verdict::kClean : Verdict::kUnknown;
  return report;
}

}  // namespace trapline::check
