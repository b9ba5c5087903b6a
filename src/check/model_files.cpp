// Which files of a folder are its weights: what from_pretrained looks for, in its order
// (_get_resolved_checkpoint_files in transformers/modeling_utils.py), and what it would not find.
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "check/bounded_json.hpp"
#include "check/model_parts.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/reader.hpp"

namespace trapline::check {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::array kWeightNames{"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                  "pytorch_model.bin.index.json"};
constexpr std::array kAdapterNames{"adapter_model.safetensors", "adapter_model.bin"};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Only headers: the columns' names, dtypes and sizes.
class HeaderSink : public inputs::Sink {
 public:
  HeaderSink(std::vector<Tensor>& tensors, const std::string& file) : tensors_(tensors), file_(file) {}
  bool begin(const inputs::Column& column) override {
    tensors_.push_back({column.name, file_, column.dtype, column.sizes, std::string(column.stored)});
    return false;
  }
  bool piece(const inputs::Piece&) override { return false; }
  void malformed(const inputs::Column&, std::int64_t, std::int64_t, std::string_view) override {}

 private:
  std::vector<Tensor>& tensors_;
  const std::string& file_;
};

// The files that an index names.
void read_index(const std::string& path, Model& model, std::set<std::string>& files,
                std::vector<Error>& problems) {
  const Result<json> index = read_json_object(path);
  if (!index) {
    problems.push_back(index.error());
    return;
  }
  model.index = path;
  const auto map = index->find("weight_map");
  if (map == index->end() || !map->is_object()) {
    problems.push_back({"cannot read " + path, "it has no weight_map", "save the model again"});
    return;
  }
  for (const auto& [tensor, file] : map->items()) {
    // A name with a folder in it could lead anywhere.
    if (!file.is_string() || file.get_ref<const std::string&>().find('/') != std::string::npos) continue;
    model.expected.emplace_back(tensor, file.get<std::string>());
    files.insert(file.get<std::string>());
  }
}

// "model-00002-of-00005.safetensors", "model.fp16.safetensors": weights by a name that is not looked for.
bool is_unnamed(std::string_view name) {
  const bool ends = name.ends_with(".safetensors") || name.ends_with(".bin");
  const bool begins = name.starts_with("model.") || name.starts_with("model-") ||
                      name.starts_with("pytorch_model.") || name.starts_with("pytorch_model-");
  return ends && begins;
}

}  // namespace

void read_header(const std::string& path, Model& model, std::vector<Error>& problems) {
  const Result<inputs::MappedFile> file = inputs::MappedFile::open(path);
  if (!file) {
    problems.push_back(file.error());
    return;
  }
  if (file->bytes().empty()) {
    problems.push_back({"cannot read " + path, "the file is empty", "save or download it again"});
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
  std::set<std::string> files;
  if (is_file(model.path("adapter_config.json"))) {
    const auto* name =
        std::ranges::find_if(kAdapterNames, [&](const char* one) { return is_file(model.path(one)); });
    if (name != kAdapterNames.end()) files.insert(*name);
  } else {
    const auto* name =
        std::ranges::find_if(kWeightNames, [&](const char* one) { return is_file(model.path(one)); });
    if (name == kWeightNames.end()) {
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(model.folder, ignored)) {
        const std::string found = entry.path().filename().string();
        if (is_unnamed(found) && is_file(entry.path().string())) model.unnamed.push_back(found);
      }
      std::ranges::sort(model.unnamed);
      files.insert(model.unnamed.begin(), model.unnamed.end());
    } else if (std::string_view(*name).ends_with(".json")) {
      read_index(model.path(*name), model, files, problems);
    } else {
      files.insert(*name);
    }
  }
  for (const std::string& file : files) {
    if (is_file(model.path(file))) read_header(model.path(file), model, problems);
  }
}

}  // namespace trapline::check
