#include "check/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "check/bounded_json.hpp"
#include "check/model_parts.hpp"
#include "jsonio/access.hpp"

namespace trapline::check {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kFamilies = std::to_array<Family>({
#define TRAPLINE_FAMILY(type, tokens, positions, extra, unused, longest, extra_tokens) \
  {type, tokens, positions, extra, unused, longest, extra_tokens},
#include "check/families.def"
#undef TRAPLINE_FAMILY
});

struct PositionRow {
  Positions positions;
  std::string_view types;  // "bert|electra"
};
constexpr auto kPositions = std::to_array<PositionRow>({
#define TRAPLINE_POSITIONS(setting, table, extra, unused, types) {{table, setting, extra, unused}, types},
#include "check/positions.def"
#undef TRAPLINE_POSITIONS
});

bool names(std::string_view types, std::string_view type) {
  while (!types.empty()) {
    const std::size_t end = std::min(types.find('|'), types.size());
    if (types.substr(0, end) == type) return true;
    types.remove_prefix(std::min(end + 1, types.size()));
  }
  return false;
}

constexpr std::string_view kHeads =
    "classifier.weight|classifier.out_proj.weight|score.weight|classification_head.out_proj.weight|"
    "classification_head.weight";
bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
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

std::optional<Positions> positions_of(std::string_view model_type) {
  const Family& family = family_of(model_type);
  if (family.type == model_type)
    return Positions{family.positions, family.longest, family.extra_rows, family.unused_rows};
  const auto* row =
      std::ranges::find_if(kPositions, [&](const PositionRow& one) { return names(one.types, model_type); });
  return row == kPositions.end() ? std::nullopt : std::optional(row->positions);
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

// The table of a quantised model may be packed: its sizes are then no sizes of a table.
const Tensor* Model::token_table() const {
  const Tensor* table = find(family_of(type()).tokens);
  return table != nullptr && table->sizes.size() == 2 && is_floating(table->dtype) ? table : nullptr;
}

bool Model::quantized() const {
  const auto settings = config.find("quantization_config");
  return (settings != config.end() && settings->is_object()) ||
         std::ranges::any_of(tensors, [](const Tensor& one) { return one.stored.starts_with("float8"); });
}

const Tensor* Model::position_table() const {
  const auto positions = positions_of(type());
  const Tensor* table = positions ? find(positions->table) : nullptr;
  return table != nullptr && table->sizes.size() == 2 ? table : nullptr;
}

const Tensor* Model::head() const {
  const Tensor* tensor = find(kHeads);
  return tensor != nullptr && tensor->sizes.size() == 2 ? tensor : nullptr;
}

std::optional<std::int64_t> Model::longest_sequence() const {
  const Tensor* table = position_table();
  const std::int64_t unused = table != nullptr ? positions_of(type())->unused_rows : -1;
  return unused < 0 ? std::nullopt : std::optional(table->rows() - unused);
}

std::optional<std::int64_t> Model::rows_of_tokens() const {
  if (const Tensor* table = token_table()) return table->rows();
  if (family_of(type()).tokens.empty()) return std::nullopt;  // its vocab_size counts something else
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

std::optional<std::int64_t> setting(const json& config, std::string_view path) {
  const json* at = &config;
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.')) {
    const auto part = at->find(std::string(path.substr(0, dot)));
    if (part == at->end() || !part->is_object()) return std::nullopt;
    at = &*part;
    path.remove_prefix(dot + 1);
  }
  return jsonio::integer(*at, std::string(path).c_str());
}

Finding model_finding(Cause cause, std::string source, std::string summary, std::vector<std::string> fixes,
                      std::optional<Layer> layer) {
  Finding finding;
  finding.cause = cause;
  finding.certainty = Certainty::kDetermined;
  finding.device_assert = false;
  finding.summary = source + ": " + summary;
  finding.layer = std::move(layer);
  finding.fix = std::move(fixes);
  finding.evidence.push_back({std::move(source), std::nullopt, std::move(summary)});
  return finding;
}

Result<Model> read_model(const std::string& folder, std::vector<Error>& problems) {
  Model model;
  model.folder = folder;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Error{"cannot check " + folder, "it is not a folder", "name the folder that holds config.json"};
  }
  const bool adapter = is_file(model.path("adapter_config.json"));
  if (!is_file(model.path("config.json")) && !adapter) {
    return Error{"cannot check " + folder, "it holds no config.json",
                 "name the folder of a Hugging Face model"};
  }
  if (is_file(model.path("config.json"))) {
    Result<json> config = read_json_object(model.path("config.json"));
    if (!config) return config.error();
    model.config = std::move(config).value();
  }
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

namespace {

std::vector<std::string> gguf_files(const std::string& path) {
  std::error_code ignored;
  if (path.ends_with(".gguf") && fs::is_regular_file(path, ignored)) return {path};
  std::vector<std::string> found;
  if (is_file((fs::path(path) / "config.json").string())) return found;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (entry.path().extension() == ".gguf") found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  return found;
}

// Bounds that a model clamps its activations by are buffers of one number, and infinite where there is no
// bound.
bool is_open_bound(const ColumnResult& column) {
  const std::string_view name = column.name;
  return (name.ends_with("_min") || name.ends_with("_max")) && column.tally.total == 1 &&
         column.tally.reason == Reason::kInf;
}

void look_at_values(const std::vector<std::string>& files, const Job& job, Report& report,
                    std::vector<Error>& problems) {
  Rule rule;
  rule.kind = RuleKind::kFinite;
  rule.weights = true;
  std::vector<FileResult> weights = check_files(rule, {"", false, {}, true}, files, job);
  std::int64_t values = 0;
  for (FileResult& file : weights) {
    if (file.error) problems.push_back(*file.error);
    for (ColumnResult& column : file.columns) {
      values += column.tally.total;
      if (is_open_bound(column)) column.tally.bad = 0;
    }
  }
  Report seen = report_of(rule, weights);
  std::ranges::move(seen.findings, std::back_inserter(report.findings));
  std::ranges::move(seen.notes, std::back_inserter(report.notes));
  report.checked = std::move(seen.checked);
  const bool all = std::ranges::all_of(weights, &FileResult::whole);
  report.verdict = !report.findings.empty() ? Verdict::kFault : all ? Verdict::kClean : Verdict::kUnknown;
  if (values == 0 && report.verdict == Verdict::kClean) {
    report.notes.emplace_back("no value of a weight could be looked at");
  }
}

}  // namespace

Report check_model(const std::string& folder, const Job& job, std::vector<Error>& problems) {
  Report report;
  report.command = Command::kCheck;
  report.verdict = Verdict::kUnknown;
  if (const std::vector<std::string> files = gguf_files(folder); !files.empty()) {
    for (const std::string& file : files) {
      std::ranges::move(findings_of_gguf(file), std::back_inserter(report.findings));
    }
    look_at_values(files, job, report, problems);
    return report;
  }
  const Result<Model> model = read_model(folder, problems);
  if (!model) {
    problems.push_back(model.error());
    return report;
  }
  report.findings = is_file(model->path("adapter_config.json")) ? findings_of_adapter(*model, problems)
                                                                : findings_of(*model);
  look_at_values(model->files, job, report, problems);
  if (model->tokenizer.file.empty()) report.notes.emplace_back("the folder holds no tokenizer");
  if (model->files.empty()) {
    report.notes.emplace_back("the folder holds no weights that can be read");
    if (report.verdict == Verdict::kClean) report.verdict = Verdict::kUnknown;
    if (report.findings.empty() && problems.empty()) {
      problems.push_back({"cannot check " + folder, "it holds no weights that can be read",
                          "name the folder that holds model.safetensors or pytorch_model.bin"});
    }
  }
  return report;
}

}  // namespace trapline::check
