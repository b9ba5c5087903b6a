#include "inputs/features.hpp"

#include "inputs/json_text.hpp"

namespace trapline::inputs {
namespace {

using simdjson::SUCCESS;

constexpr int kMaxDepth = 8;

// {"names": ["cat", "dog"], "_type": "ClassLabel"}, also as the "feature" of lists; the keys come in any
// order.
std::vector<ClassName> names_of(ondemand::object& feature, int depth = 0) {
  std::vector<ClassName> names, below;
  bool is_label = false;
  for (auto field : feature) {
    std::string_view key;
    if (field.unescaped_key().get(key) != SUCCESS) return {};
    if (key == "_type") {
      std::string_view type;
      if (field.value().get_string().get(type) != SUCCESS) return {};
      is_label = type == "ClassLabel";
    } else if (key == "names") {
      ondemand::array list;
      if (field.value().get_array().get(list) != SUCCESS) return {};
      for (auto item : list) {
        std::string_view name;
        if (item.get_string().get(name) != SUCCESS) return {};
        names.push_back({static_cast<std::int64_t>(names.size()), std::string(name)});
      }
    } else if (key == "feature" && depth < kMaxDepth) {
      ondemand::object inner;
      if (field.value().get_object().get(inner) == SUCCESS) below = names_of(inner, depth + 1);
    }
  }
  return is_label ? names : below;
}

}  // namespace

std::vector<std::string> split_names(std::string_view json) {
  std::vector<std::string> names;
  JsonText text;
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array splits;
  const auto view = text.of(json);
  if (parser.iterate(view).get(document) != SUCCESS) return names;
  if (document["splits"].get_array().get(splits) != SUCCESS) return names;
  for (auto split : splits) {
    std::string_view name;
    if (split.get_string().get(name) != SUCCESS) return {};
    names.emplace_back(name);
  }
  return names;
}

std::map<std::string, std::vector<ClassName>> class_labels(std::string_view json) {
  std::map<std::string, std::vector<ClassName>> found;
  JsonText text;
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object features;
  const auto view = text.of(json);
  if (parser.iterate(view).get(document) != SUCCESS) return found;
  if (document["info"]["features"].get_object().get(features) != SUCCESS) {
    document.rewind();
    if (document["features"].get_object().get(features) != SUCCESS) return found;
  }
  for (auto field : features) {
    std::string_view key;
    ondemand::value value;
    ondemand::object feature;
    if (field.unescaped_key().get(key) != SUCCESS) return found;
    const std::string name(key);
    if (field.value().get(value) != SUCCESS) return found;
    if (value.get_object().get(feature) != SUCCESS) continue;
    std::vector<ClassName> names = names_of(feature);
    if (!names.empty()) found.emplace(name, std::move(names));
  }
  return found;
}

}  // namespace trapline::inputs
