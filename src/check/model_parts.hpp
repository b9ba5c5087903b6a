// The rules for model folders that stand in files of their own.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/model.hpp"

namespace trapline::check {

// The integer of `config` at "text_config.num_hidden_layers".
std::optional<std::int64_t> setting(const nlohmann::json& config, std::string_view path);
// A finding about `source` (a path) that is certain.
Finding model_finding(Cause cause, std::string source, std::string summary, std::vector<std::string> fixes,
                      std::optional<Layer> layer = std::nullopt);
// An id that has no row in the table of tokens, in the words of the guard. `bad`: how many there are;
// `greatest`: the largest of them.
void add_id(std::vector<Finding>& findings, const Model& model, const NamedId& id, std::int64_t bad,
            std::int64_t greatest);

// What the file's header says of it goes to model.tensors and model.files.
void read_header(const std::string& path, Model& model, std::vector<Error>& problems);
// The files that from_pretrained would load, in its order of preference, and those that it would not find.
void read_weights(Model& model, std::vector<Error>& problems);

// The ids of the tokenizer against the table of tokens.
void check_tokens(const Model& model, std::vector<Finding>& findings);
// The lists of layers against the settings that are their lengths.
void check_layers(const Model& model, std::vector<Finding>& findings);
// A folder with adapter_config.json (PEFT) and its weights; with the base model where it is a folder here.
std::vector<Finding> findings_of_adapter(const Model& model, std::vector<Error>& problems);
// A .gguf file, by its header alone.
std::vector<Finding> findings_of_gguf(const std::string& path);

}  // namespace trapline::check
