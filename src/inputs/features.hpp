// The classes that Hugging Face datasets writes into a schema's metadata, and into dataset_info.json.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "inputs/reader.hpp"

namespace trapline::inputs {

// By column. `json`: the metadata's value under "huggingface", or the file. What cannot be read names no
// classes.
std::map<std::string, std::vector<ClassName>> class_labels(std::string_view json);

// The tables of a DatasetDict, in their order: `json` is its dataset_dict.json.
std::vector<std::string> split_names(std::string_view json);

}  // namespace trapline::inputs
