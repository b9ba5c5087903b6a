// .safetensors, and folders of shards with their *.safetensors.index.json as one source.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "inputs/damage.hpp"
#include "inputs/elements.hpp"
#include "inputs/formats.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/safetensors_header.hpp"

namespace trapline::inputs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexEnd = ".safetensors.index.json";

struct DTypeRow {
  std::string_view dtype;
  Stored stored;
  bool complex = false;
};
constexpr DTypeRow kDTypes[] = {
    {"BOOL", Stored::kBool},          {"U8", Stored::kUInt8},           {"I8", Stored::kInt8},
    {"I16", Stored::kInt16},          {"U16", Stored::kUInt16},         {"F16", Stored::kFloat16},
    {"BF16", Stored::kBFloat16},      {"I32", Stored::kInt32},          {"U32", Stored::kUInt32},
    {"F32", Stored::kFloat32},        {"I64", Stored::kInt64},          {"U64", Stored::kUInt64},
    {"F64", Stored::kFloat64},        {"F8_E4M3", Stored::kFloat8E4M3}, {"F8_E5M2", Stored::kFloat8E5M2},
    {"F8_E8M0", Stored::kFloat8E8M0}, {"C64", Stored::kFloat32, true},  {"C128", Stored::kFloat64, true},
};

// `tensors` lie in `bytes`; `file` is empty when that is the source itself.
void deliver(const std::vector<SafetensorsTensor>& tensors, std::span<const std::byte> bytes,
             std::string_view file, Sink& sink) {
  for (const SafetensorsTensor& tensor : tensors) {
    if (sink.stopped()) return;
    const auto* row = std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](const DTypeRow& candidate) {
      return candidate.dtype == tensor.dtype;
    });
    if (row == std::end(kDTypes)) {
      sink.skipped(tensor.name, "elements of the dtype " + tensor.dtype);
      continue;
    }
    const Encoding encoding{row->stored};
    Column column{tensor.name, encoding.dtype(), tensor.sizes, name_of(row->stored)};
    if (row->complex) column.sizes.push_back(2);
    if (!sink.begin(column)) continue;
    if (!file.empty()) sink.file(column, file, 0);
    DenseDelivery delivery(sink, column, encoding);
    delivery.all(bytes.subspan(tensor.begin, tensor.end - tensor.begin));
  }
}

// `wanted`: the names that the index expects in the shard; null: whatever is there.
std::optional<Error> read_shard(const std::string& path, const std::set<std::string>* wanted, Sink& sink) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  const Result<std::vector<SafetensorsTensor>> tensors = read_safetensors_header(file->bytes(), path);
  if (!tensors) return tensors.error();
  if (wanted != nullptr) {
    std::set<std::string> missing = *wanted;
    for (const SafetensorsTensor& tensor : *tensors) missing.erase(tensor.name);
    if (!missing.empty()) {
      return unreadable(
          path,
          "the index says that it holds " + in_quotes(*missing.begin(), 200) +
              (missing.size() > 1 ? " and " + std::to_string(missing.size() - 1) + " more" : "") +
              ", but it does not",
          "save or download the model again");
    }
  }
  deliver(*tensors, file->bytes(), path, sink);
  return std::nullopt;
}

Result<bool> read_index(const std::string& path, std::span<const std::byte> bytes, Sink& sink) {
  const Result<std::vector<ShardedTensor>> tensors = read_safetensors_index(bytes, path);
  if (!tensors) return tensors.error();
  std::map<std::string, std::set<std::string>> shards;
  for (const ShardedTensor& tensor : *tensors) shards[tensor.file].insert(tensor.name);
  for (const auto& [file, names] : shards) {
    if (sink.stopped()) return false;
    const std::string shard = (fs::path(path).parent_path() / file).string();
    if (std::optional<Error> problem = read_shard(shard, &names, sink)) return *std::move(problem);
  }
  return !sink.stopped();
}

// The files of a folder that matter here, by name.
struct Folder {
  std::vector<std::string> indices, files;
};
Folder look_into(const std::string& path) {
  Folder folder;
  std::error_code problem;
  for (fs::directory_iterator entry(path, problem), end; !problem && entry != end; entry.increment(problem)) {
    const std::string name = entry->path().string();
    if (name.ends_with(kIndexEnd)) folder.indices.push_back(name);
    if (name.ends_with(".safetensors")) folder.files.push_back(name);
  }
  std::sort(folder.indices.begin(), folder.indices.end());
  std::sort(folder.files.begin(), folder.files.end());
  return folder;
}

class SafetensorsReader final : public Reader {
 public:
  std::string_view name() const override { return "safetensors"; }
  bool knows(const Source& source) const override {
    if (source.path.ends_with(".safetensors") || source.path.ends_with(kIndexEnd)) return true;
    if (!source.bytes.empty()) {
      // No magic number: a plausible length, then an object.
      return source.bytes.size() > 9 && load_le<std::uint64_t>(source.bytes, 0) <= source.bytes.size() - 8 &&
             load_le<std::uint64_t>(source.bytes, 0) >= 2 &&
             as_text(source.bytes.subspan(8)).starts_with("{\"");
    }
    const Folder folder = look_into(source.path);
    return !folder.indices.empty() || !folder.files.empty();
  }
  Result<bool> read(const Source& source, Sink& sink) const override {
    if (source.path.ends_with(kIndexEnd)) return read_index(source.path, source.bytes, sink);
    std::error_code problem;
    if (source.bytes.empty() && fs::is_directory(source.path, problem)) return read_folder(source.path, sink);
    const Result<std::vector<SafetensorsTensor>> tensors = read_safetensors_header(source.bytes, source.path);
    if (!tensors) return tensors.error();
    deliver(*tensors, source.bytes, {}, sink);
    return !sink.stopped();
  }

 private:
  // With an index, what it names; without one, every file.
  static Result<bool> read_folder(const std::string& path, Sink& sink) {
    const Folder folder = look_into(path);
    for (const std::string& index : folder.indices) {
      const Result<MappedFile> file = MappedFile::open(index);
      if (!file) return file.error();
      Result<bool> read = read_index(index, file->bytes(), sink);
      if (!read || !*read) return read;
    }
    if (!folder.indices.empty()) return true;
    for (const std::string& file : folder.files) {
      if (sink.stopped()) return false;
      if (std::optional<Error> problem = read_shard(file, nullptr, sink)) return *std::move(problem);
    }
    return !sink.stopped();
  }
};

}  // namespace

const Reader& safetensors() {
  static const SafetensorsReader reader;
  return reader;
}

}  // namespace trapline::inputs
