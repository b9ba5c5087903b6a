// A Hugging Face model folder: what its files say of tables, heads and ids, and whether they agree.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "check/files.hpp"
#include "check/tokenizer.hpp"
#include "core/finding.hpp"
#include "core/result.hpp"

namespace trapline::check {

struct Tensor {
  std::string name, file;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> sizes;
  std::string stored;  // its dtype in the file where core has none of that name: "float8_e4m3fn"
  std::int64_t rows() const { return sizes.empty() ? 0 : sizes[0]; }
};

struct Model {
  std::string folder;
  nlohmann::json config = nlohmann::json::object(), generation = nlohmann::json::object();
  std::vector<Tensor> tensors;                                // of all shards, as their headers say
  std::vector<std::string> files;                             // that hold weights and are there
  std::vector<std::pair<std::string, std::string>> expected;  // tensor and file, as the index says
  std::string index;                                          // its path; empty: one file
  std::vector<std::string> unnamed;  // weights that from_pretrained(folder) does not look for, by name
  Tokenizer tokenizer;

  const Tensor* find(std::string_view suffixes) const;  // the first that ends in one of "a|b"
  const Tensor* token_table() const;
  const Tensor* position_table() const;
  const Tensor* head() const;                            // of a classifier
  std::optional<std::int64_t> longest_sequence() const;  // by the position table, where its family is known
  std::optional<std::int64_t> rows_of_tokens() const;    // by the weights, else by the config
  std::optional<std::int64_t> classes() const;           // by the head, else by id2label
  bool quantized() const;              // the weights are not the numbers of the config's dtype
  std::int64_t named_classes() const;  // entries of id2label; 0: none
  std::map<std::string, std::int64_t> special_ids() const;  // of the config, negative ones left out
  std::string type() const;                                 // model_type
  std::string path(std::string_view name) const;
};

// One row of families.def.
struct Family {
  std::string_view type, tokens, positions;
  std::int64_t extra_rows, unused_rows;
  std::string_view longest;
  std::int64_t extra_tokens = 0;  // rows of the token table more than vocab_size
};
const Family& family_of(std::string_view model_type);

// Where a family keeps its positions: its row of families.def, else that of positions.def.
struct Positions {
  std::string_view table, setting;
  std::int64_t extra_rows = 0;   // more than the setting says
  std::int64_t unused_rows = 0;  // that no sequence reaches; negative: not known
};
std::optional<Positions> positions_of(std::string_view model_type);

// "transformer.wte" as the Embedding that it is.
Layer table_layer(const Tensor& table);
Layer head_layer(const Tensor& head);

// Reads config, tokenizer and the headers of the weights. An error when the folder is no model at all;
// damaged files of it are problems.
Result<Model> read_model(const std::string& folder, std::vector<Error>& problems);

// Everything that the files of a model say of each other, without the weights' values.
std::vector<Finding> findings_of(const Model& model);

// The same and every weight, looked at for NaN and Inf.
Report check_model(const std::string& folder, const Job& job, std::vector<Error>& problems);

}  // namespace trapline::check
