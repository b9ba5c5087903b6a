// What the header of a .gguf file says of its tables, layers and ids: llama.cpp refuses the file where they
// do not agree (load_tensors: wrong shape, missing tensor), or takes another id.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "check/model_parts.hpp"
#include "inputs/gguf_header.hpp"
#include "inputs/mapped_file.hpp"

namespace trapline::check {
namespace {

constexpr std::int64_t kNoToken = 0xFFFFFFFF;  // the id of a token that there is not
constexpr std::int64_t kMaxLayers = 1 << 20;

class GgufModel {
 public:
  GgufModel(const inputs::GgufHeader& header, const std::string& path) : header_(header), path_(path) {
    const auto name = header.texts.find("general.architecture");
    architecture_ = name == header.texts.end() ? std::string() : name->second;
    for (const inputs::GgufTensor& tensor : header.tensors) {
      if (tensor.name == "token_embd.weight" && tensor.sizes.size() == 2) table_ = &tensor;
    }
  }

  std::vector<Finding> look() {
    const auto type = header_.texts.find("general.type");
    if (type != header_.texts.end() && type->second != "model") return {};
    vocabulary();
    special_ids();
    width();
    layers();
    return std::move(findings_);
  }

 private:
  std::optional<std::int64_t> number(const std::string& key) const {
    const auto found = header_.integers.find(key);
    return found == header_.integers.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::int64_t> of_architecture(const std::string& key) const {
    return number(architecture_ + "." + key);
  }
  std::optional<std::int64_t> tokens() const {
    const auto found = header_.array_sizes.find("tokenizer.ggml.tokens");
    return found != header_.array_sizes.end() && found->second > 0 ? std::optional(found->second)
                                                                   : of_architecture("vocab_size");
  }
  void add(Cause cause, std::string summary, std::string fix) {
    findings_.push_back(model_finding(cause, path_, std::move(summary), {std::move(fix)}));
  }

  void vocabulary() {
    const auto count = tokens();
    if (table_ == nullptr || !count || *count == table_->sizes[0]) return;
    add(Cause::kShapeMismatch,
        fmt::format("the vocabulary has {} tokens, but `token_embd.weight` has {} rows", *count,
                    table_->sizes[0]),
        "convert the model again, with the tokenizer that it was trained with; after added tokens first "
        "model.resize_token_embeddings(len(tokenizer))");
  }

  void special_ids() {
    const auto count = tokens();
    if (!count) return;
    for (const auto& [key, id] : header_.integers) {
      if (!key.starts_with("tokenizer.ggml.") || !key.ends_with("_token_id")) continue;
      if (id == kNoToken || (id >= 0 && id < *count)) continue;
      add(Cause::kEmbeddingIndexOutOfRange,
          fmt::format("{} is {}, but the vocabulary has {} tokens: valid ids are [0, {})", key, id, *count,
                      *count),
          fmt::format("set {} to an id of the vocabulary: the one that the model's tokenizer has for it",
                      key));
    }
  }

  void width() {
    const auto says = of_architecture("embedding_length");
    if (table_ == nullptr || !says || *says == table_->sizes[1]) return;
    add(Cause::kShapeMismatch,
        fmt::format("{}.embedding_length is {}, but `token_embd.weight` has {} columns", architecture_, *says,
                    table_->sizes[1]),
        "convert the model again");
  }

  void layers() {
    const auto says = of_architecture("block_count");
    // The other files of a model that is split hold the rest.
    if (!says || *says <= 0 || *says > kMaxLayers || number("split.count").value_or(1) > 1) return;
    std::set<std::int64_t> there;
    for (const inputs::GgufTensor& tensor : header_.tensors) {
      if (!tensor.name.starts_with("blk.")) continue;
      std::int64_t layer = 0;
      const char* end = tensor.name.data() + tensor.name.size();
      const auto [stop, error] = std::from_chars(tensor.name.data() + 4, end, layer);
      if (error == std::errc{} && stop != end && *stop == '.') there.insert(layer);
    }
    if (there.empty()) return;
    std::int64_t missing = 0;
    while (there.contains(missing)) ++missing;
    if (missing >= *says) return;
    add(Cause::kIncompleteCheckpoint,
        fmt::format("{}.block_count is {}, but the file holds no tensor of `blk.{}`", architecture_, *says,
                    missing),
        "convert or download the model again");
  }

  const inputs::GgufHeader& header_;
  const std::string& path_;
  std::string architecture_;
  const inputs::GgufTensor* table_ = nullptr;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> findings_of_gguf(const std::string& path) {
  const Result<inputs::MappedFile> file = inputs::MappedFile::open(path);
  if (!file) return {};  // the reader of the values says so
  const Result<inputs::GgufHeader> header = inputs::read_gguf_header(file->bytes(), path);
  return header ? GgufModel(*header, path).look() : std::vector<Finding>();
}

}  // namespace trapline::check
