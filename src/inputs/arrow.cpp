// .parquet, .arrow and .feather, and data sets that Hugging Face datasets saved to a folder. The reading
// itself is in libtrapline_arrow.so (src/inputs/arrow).
#include <algorithm>
#include <filesystem>
#include <vector>

#include "inputs/arrow_plugin.hpp"
#include "inputs/damage.hpp"
#include "inputs/folder.hpp"
#include "inputs/formats.hpp"
#include "inputs/json_text.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/plugin.hpp"

namespace trapline::inputs {
namespace {

namespace fs = std::filesystem;
using simdjson::SUCCESS;

constexpr std::size_t kMaxState = std::size_t{16} << 20U;

const Plugin& plugin() {
  static const Plugin loaded = load_plugin("libtrapline_arrow.so", kArrowReadName, "TRAPLINE_ARROW_PLUGIN");
  return loaded;
}

bool is_there(const fs::path& path) {
  std::error_code problem;
  return fs::exists(path, problem);
}

std::optional<Error> read_table(std::span<const ArrowPart> parts, Sink& sink) {
  std::optional<Error> problem;
  reinterpret_cast<ArrowRead>(plugin().symbol)(parts, sink, problem);
  return problem;
}

std::optional<Error> read_parts(const std::vector<std::string>& paths, Sink& sink) {
  std::vector<MappedFile> files;
  std::vector<ArrowPart> parts;
  for (const std::string& path : paths) {
    Result<MappedFile> file = MappedFile::open(path);
    if (!file) return file.error();
    files.push_back(std::move(file).value());
    parts.push_back({path, files.back().bytes(), true});
  }
  return read_table(parts, sink);
}

// A name in a data set's own lists may not lead out of its folder.
bool is_plain(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

// Every string under "filename" of {"_data_files": [{"filename": ...}]}, or of the list {"splits": [...]}.
Result<std::vector<std::string>> names_in(const fs::path& path, const char* list, const char* key) {
  const Result<MappedFile> file = MappedFile::open(path.string());
  if (!file) return file.error();
  const auto broken = [&](const std::string& why) { return damaged(path.string(), 0, why); };
  if (file->bytes().size() > kMaxState) return broken("more than 16 MiB");
  JsonText text;
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array items;
  const auto view = text.of(as_text(file->bytes()));
  auto problem = parser.iterate(view).get(document);
  if (problem == SUCCESS) problem = document.find_field_unordered(list).get_array().get(items);
  if (problem != SUCCESS) return broken("no list " + in_quotes(list) + ": " + json_problem(problem));
  std::vector<std::string> names;
  for (auto item : items) {
    std::string_view name;
    problem =
        key == nullptr ? item.get_string().get(name) : item.find_field_unordered(key).get_string().get(name);
    if (problem != SUCCESS) return broken("the list " + in_quotes(list) + ": " + json_problem(problem));
    if (!is_plain(name))
      return broken("the list " + in_quotes(list) + " has " + in_quotes(name) + ", which is not a file name");
    names.emplace_back(name);
  }
  return names;
}

std::optional<Error> read_dataset(const fs::path& folder, Sink& sink) {
  const Result<std::vector<std::string>> names = names_in(folder / "state.json", "_data_files", "filename");
  if (!names) return names.error();
  std::vector<std::string> paths;
  for (const std::string& name : *names) paths.push_back((folder / name).string());
  return read_parts(paths, sink);
}

class ArrowReader final : public Reader {
 public:
  std::string_view name() const override { return "arrow"; }
  bool knows(const Source& source) const override {
    const std::string_view text = as_text(source.bytes);
    // The stream format has no magic number; its first message begins like this.
    for (const std::string_view magic : {"PAR1", "ARROW1", "FEA1", "\xff\xff\xff\xff"}) {
      if (text.starts_with(magic)) return true;
    }
    for (const std::string_view end : {".parquet", ".arrow", ".feather", ".ipc"}) {
      if (source.path.ends_with(end)) return true;
    }
    if (!is_folder(source.path)) return false;
    const fs::path folder(source.path);
    return is_there(folder / "dataset_dict.json") ||
           (is_there(folder / "state.json") && is_there(folder / "dataset_info.json"));
  }
  bool is_table(const Source&) const override { return true; }
  Result<bool> read(const Source& source, Sink& sink) const override {
    if (plugin().symbol == nullptr) {
      return unreadable(source.path, "Parquet and Arrow need Arrow C++ (" + plugin().problem + ")",
                        "check the columns in Python (trapline.check_labels), write the data as .npy, .csv "
                        "or .jsonl, or give Trapline its pyarrow (docs/install.md)");
    }
    const std::optional<Error> problem =
        is_folder(source.path) ? read_folder(source.path, sink) : read_file(source, sink);
    if (problem) return *problem;
    return !sink.stopped();
  }

 private:
  static std::optional<Error> read_file(const Source& source, Sink& sink) {
    const ArrowPart part{source.path, source.bytes, false};
    return read_table({&part, 1}, sink);
  }
  static std::optional<Error> read_folder(const fs::path& folder, Sink& sink) {
    if (!is_there(folder / "dataset_dict.json")) return read_dataset(folder, sink);
    const Result<std::vector<std::string>> splits = names_in(folder / "dataset_dict.json", "splits", nullptr);
    if (!splits) return splits.error();
    for (const std::string& split : *splits) {
      if (sink.stopped()) break;
      if (std::optional<Error> problem = read_dataset(folder / split, sink)) return problem;
    }
    return std::nullopt;
  }
};

}  // namespace

const Reader& arrow() {
  static const ArrowReader reader;
  return reader;
}

}  // namespace trapline::inputs
