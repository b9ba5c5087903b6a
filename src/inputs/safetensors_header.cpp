#include "inputs/safetensors_header.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "inputs/damage.hpp"
#include "inputs/json_text.hpp"

namespace trapline::inputs {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // as the format's own library
constexpr std::size_t kMaxIndex = std::size_t{256} << 20U;

struct BitsRow {
  std::string_view dtype;
  unsigned bits;
};
constexpr BitsRow kBits[] = {
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},     {"F8_E4M3", 8},     {"F8_E5M2", 8},     {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},  {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"I64", 64},    {"U64", 64},    {"F64", 64},   {"C64", 64},        {"F4", 4},          {"F8_E8M0", 8},
    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"C128", 128}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
};

using simdjson::SUCCESS;

// One tensor's entry. False: it is not as the format wants it, and `why` says how.
bool read_entry(ondemand::value value, SafetensorsTensor& tensor, std::string& why) {
  ondemand::object fields;
  if (value.get_object().get(fields) != SUCCESS) return why = "it is not an object", false;
  int seen = 0;
  std::uint64_t offsets[2] = {0, 0};
  for (auto field : fields) {
    std::string_view key;
    if (field.unescaped_key().get(key) != SUCCESS) return why = "it has a broken key", false;
    if (key == "dtype") {
      std::string_view dtype;
      if (field.value().get_string().get(dtype) != SUCCESS) return why = "its dtype is not a string", false;
      tensor.dtype = std::string(dtype);
      seen |= 1;
    } else if (key == "shape") {
      ondemand::array sizes;
      if (field.value().get_array().get(sizes) != SUCCESS) return why = "its shape is not a list", false;
      for (auto size : sizes) {
        std::int64_t number = 0;
        if (size.get_int64().get(number) != SUCCESS || number < 0 || tensor.sizes.size() == 64) {
          return why = "its shape is not valid", false;
        }
        tensor.sizes.push_back(number);
      }
      seen |= 2;
    } else if (key == "data_offsets") {
      ondemand::array list;
      if (field.value().get_array().get(list) != SUCCESS) return why = "its offsets are not a list", false;
      std::size_t count = 0;
      for (auto offset : list) {
        if (count == 2 || offset.get_uint64().get(offsets[count]) != SUCCESS) {
          return why = "its offsets are not valid", false;
        }
        ++count;
      }
      if (count != 2) return why = "it has no two offsets", false;
      seen |= 4;
    }
  }
  if (seen != 7) return why = "it lacks dtype, shape or data_offsets", false;
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  const unsigned bits = safetensors_bits(tensor.dtype);
  if (bits == 0) return why = "the dtype " + in_quotes(tensor.dtype) + " is not known", false;
  const std::optional<std::int64_t> total = product(tensor.sizes, bits);
  if (!total) return why = "its shape has more elements than any file can hold", false;
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != static_cast<std::uint64_t>(*total + 7) / 8) {
    return why = "its offsets do not fit its shape", false;
  }
  return true;
}

}  // namespace

unsigned safetensors_bits(std::string_view dtype) {
  const auto* row = std::find_if(std::begin(kBits), std::end(kBits),
                                 [&](const BitsRow& candidate) { return candidate.dtype == dtype; });
  return row == std::end(kBits) ? 0 : row->bits;
}

Result<std::vector<SafetensorsTensor>> read_safetensors_header(std::span<const std::byte> bytes,
                                                               const std::string& path) {
  if (bytes.size() < 8) return damaged(path, bytes.size(), "the file is too short for a .safetensors header");
  const auto length = load_le<std::uint64_t>(bytes, 0);
  if (length > kMaxHeader) {
    return damaged(
        path, 0,
        "the header claims " + std::to_string(length) + " bytes: no .safetensors file, or a damaged one");
  }
  if (length > bytes.size() - 8) {
    return damaged(path, bytes.size(),
                   "the header ends too early: it claims " + std::to_string(length) + " bytes");
  }

  JsonText text;
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  const auto view = text.of(as_text(bytes.subspan(8, length)));
  auto problem = parser.iterate(view).get(document);
  if (problem == SUCCESS) problem = document.get_object().get(object);
  if (problem != SUCCESS) return damaged(path, 8, "the header is " + json_problem(problem));

  std::vector<SafetensorsTensor> tensors;
  std::unordered_set<std::string> names;
  for (auto field : object) {
    std::string_view key;
    ondemand::value value;
    problem = field.error();
    if (problem == SUCCESS) problem = field.unescaped_key().get(key);
    SafetensorsTensor tensor;
    if (problem == SUCCESS) tensor.name = std::string(key);
    if (problem == SUCCESS) problem = field.value().get(value);
    if (problem != SUCCESS)
      return damaged(path, 8 + text.offset(document), "the header is " + json_problem(problem));
    if (tensor.name == "__metadata__") continue;
    std::string why;
    if (!read_entry(value, tensor, why)) {
      return damaged(path, 8 + text.offset(document),
                     "the header's entry " + in_quotes(tensor.name) + ": " + why);
    }
    if (!names.insert(tensor.name).second) {
      return damaged(path, 8 + text.offset(document),
                     "the header names " + in_quotes(tensor.name) + " twice");
    }
    tensors.push_back(std::move(tensor));
  }
  if (!at_end(document)) return damaged(path, 8 + text.offset(document), "the header goes on behind its end");

  std::sort(tensors.begin(), tensors.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  const std::uint64_t room = bytes.size() - 8 - length;
  std::uint64_t next = 0;
  for (SafetensorsTensor& tensor : tensors) {
    if (tensor.begin != next) {
      return damaged(
          path, 8 + length + next,
          "the data of " + in_quotes(tensor.name) +
              (tensor.begin < next ? " overlaps another tensor's" : " leaves a gap in front of it"));
    }
    if (tensor.end > room) {
      return damaged(path, bytes.size(),
                     "the data of " + in_quotes(tensor.name) + " ends behind the end of the file, " +
                         std::to_string(tensor.end - room) + " bytes are missing");
    }
    next = tensor.end;
    tensor.begin += 8 + length;
    tensor.end += 8 + length;
  }
  if (next != room) {
    return damaged(path, 8 + length + next, "there are bytes that belong to no tensor");
  }
  return tensors;
}

Result<std::vector<ShardedTensor>> read_safetensors_index(std::span<const std::byte> bytes,
                                                          const std::string& path) {
  if (bytes.size() > kMaxIndex) return damaged(path, kMaxIndex, "an index of more than 256 MiB");
  JsonText text;
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object map;
  const auto view = text.of(as_text(bytes));
  auto problem = parser.iterate(view).get(document);
  if (problem == SUCCESS) problem = document.find_field_unordered("weight_map").get_object().get(map);
  if (problem != SUCCESS) return damaged(path, 0, "no index with a weight_map: " + json_problem(problem));
  std::vector<ShardedTensor> tensors;
  for (auto field : map) {
    std::string_view key;
    std::string_view file;
    problem = field.error();
    if (problem == SUCCESS) problem = field.unescaped_key().get(key);
    ShardedTensor tensor{std::string(key), ""};
    if (problem == SUCCESS) problem = field.value().get_string().get(file);
    if (problem != SUCCESS)
      return damaged(path, text.offset(document), "the weight_map is " + json_problem(problem));
    // An index may not lead out of its folder.
    if (file.empty() || file == "." || file == ".." ||
        file.find_first_of(std::string_view("/\\\0", 3)) != file.npos) {
      return damaged(path, text.offset(document),
                     "the weight_map names " + in_quotes(file) + ", which is not a file name");
    }
    tensor.file = std::string(file);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace trapline::inputs
