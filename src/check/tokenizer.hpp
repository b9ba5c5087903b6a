// The ids that a tokenizer's files can give, and the tokens that they name apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/result.hpp"

namespace trapline::check {

struct NamedId {
  std::string file;  // "tokenizer.json"
  std::string name;  // "the id of '<pad>'"
  std::int64_t id = 0;
};

struct Tokenizer {
  std::string file;  // where the vocabulary is from; empty: there is none
  std::unordered_map<std::string, std::int64_t>
      vocabulary;               // with added tokens; names of a .model are left out
  std::int64_t size = 0;        // largest id + 1
  std::vector<NamedId> ids;     // the last of the vocabulary, and every added token
  std::vector<NamedId> absent;  // special tokens that no file gives an id; `id` is the one they would get
  std::optional<std::int64_t> longest;  // model_max_length, where it is a limit
};

// Reads tokenizer.json, or else what older tokenizers have: vocab.json, vocab.txt, *.model; then
// added_tokens.json, tokenizer_config.json and special_tokens_map.json.
Tokenizer read_tokenizer(const std::string& folder, std::vector<Error>& problems);

}  // namespace trapline::check
