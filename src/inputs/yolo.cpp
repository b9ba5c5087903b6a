// YOLO labels: a .txt per picture, a line per object ("class x y w h", or "class x1 y1 x2 y2 ..." for an
// outline), in a folder of their own or below the folder of a data.yaml that names the classes.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "inputs/class_list.hpp"
#include "inputs/damage.hpp"
#include "inputs/folder.hpp"
#include "inputs/formats.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/value_column.hpp"

namespace trapline::inputs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxNamesFile = std::size_t{4} << 20U;
constexpr std::size_t kMaxFields = 10'000;
constexpr std::size_t kValuesPerPiece = std::size_t{1} << 16U;
constexpr std::string_view kLabelEnd = ".txt";

void fields_of(std::string_view line, std::vector<std::string_view>& fields) {
  constexpr std::string_view kBlank = " \t\r";
  fields.clear();
  for (std::size_t at = line.find_first_not_of(kBlank); at != line.npos && fields.size() < kMaxFields;
       at = line.find_first_not_of(kBlank, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end;
  }
}

// A class and at least a box in parts of the picture's size.
bool is_object(const std::vector<std::string_view>& fields) {
  if (fields.size() < 5 || number_of(fields[0]).kind != Number::Kind::kInteger) return false;
  return std::all_of(fields.begin() + 1, fields.end(), [](std::string_view field) {
    const Number number = number_of(field);
    const double value =
        number.kind == Number::Kind::kInteger ? static_cast<double>(number.integer) : number.number;
    return (number.kind == Number::Kind::kInteger || number.kind == Number::Kind::kFloat) && value >= -0.5 &&
           value <= 1.5;
  });
}

bool are_labels(std::span<const std::byte> bytes) {
  std::string_view text = as_text(bytes).substr(0, 4096);
  std::vector<std::string_view> fields;
  std::size_t lines = 0, objects = 0, first = 0;  // a broken line among them is told when they are read
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    fields_of(text.substr(0, end), fields);
    lines += fields.empty() ? 0 : 1;
    objects += is_object(fields) ? 1 : 0;
    if (lines == 1) first = objects;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return first > 0 || (objects > 0 && objects * 2 >= lines);
}

bool is_label_name(const std::string& path) {
  const std::string name = name_of_path(path);
  return name.ends_with(kLabelEnd) && name != "classes.txt" && !name.starts_with('.');
}

// The label files of a folder: those below folders named "labels", or else those in the folder itself.
std::vector<std::string> label_files(const std::string& folder) {
  std::vector<std::string> files;
  const std::size_t above =
      folder.find_last_not_of('/') == folder.npos ? 0 : folder.rfind('/', folder.find_last_not_of('/')) + 1;
  each_file_below(folder, [&](const std::string& path) {
    if (is_label_name(path) && ("/" + path.substr(above)).find("/labels/") != path.npos)
      files.push_back(path);
    return true;
  });
  if (files.empty()) {
    files = files_in(folder, kLabelEnd);
    std::erase_if(files, [](const std::string& path) { return !is_label_name(path); });
  }
  std::sort(files.begin(), files.end());
  return files;
}

// From data.yaml or classes.txt in the folder of the labels or one of the two above it.
std::vector<ClassName> class_names_for(const std::string& folder) {
  fs::path at(folder);
  if (!at.has_filename()) at = at.parent_path();
  for (int up = 0; up < 3 && !at.empty(); ++up, at = at.parent_path()) {
    for (const char* name : {"data.yaml", "data.yml", "dataset.yaml", "classes.txt"}) {
      const std::string path = (at / name).string();
      const Result<MappedFile> file = MappedFile::open(path);
      if (!file || file->bytes().size() > kMaxNamesFile) continue;
      const std::string_view text = as_text(file->bytes());
      std::vector<ClassName> names = path.ends_with(kLabelEnd) ? names_in_lines(text) : names_in_yaml(text);
      if (!names.empty()) return names;
    }
  }
  return {};
}

class Labels {
 public:
  explicit Labels(Sink& sink)
      : sink_(sink),
        classes_(sink, {"class", DType::kInt64, {-1}}, kValuesPerPiece),
        boxes_(sink, {"box", DType::kFloat64, {-1}}, kValuesPerPiece) {}

  bool begin(const std::vector<ClassName>& names) {
    if (classes_.begin() && !names.empty()) sink_.class_names(classes_.column(), names);
    boxes_.begin();
    return classes_.wanted() || boxes_.wanted();
  }
  std::optional<Error> read(const std::string& path, std::span<const std::byte> bytes,
                            std::string_view file) {
    if (!file.empty()) {
      classes_.in_file(file, row_);
      boxes_.in_file(file, row_);
    }
    std::string_view text = as_text(bytes);
    std::size_t offset = 0;
    for (std::int64_t line = 1; offset < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', offset), text.size());
      fields_of(text.substr(offset, end - offset), fields_);
      const std::size_t start = offset;
      offset = end + 1;
      if (fields_.empty()) continue;
      if (fields_.size() < 5 || fields_.size() == kMaxFields) {
        flush();
        return damaged(path, start,
                       "line " + std::to_string(line) + " has " + std::to_string(fields_.size()) +
                           " fields, not a class and a box or an outline",
                       "mend or remove the line");
      }
      classes_.add(row_, line, number_of(fields_[0]), fields_[0]);
      for (std::size_t i = 1; i < fields_.size() && boxes_.wanted(); ++i) {
        boxes_.add(row_, line, number_of(fields_[i]), fields_[i]);
      }
      ++row_;
    }
    return std::nullopt;
  }
  void flush() { classes_.flush(), boxes_.flush(); }
  bool wanted() const { return classes_.wanted() || boxes_.wanted(); }

 private:
  Sink& sink_;
  ValueColumn classes_, boxes_;
  std::vector<std::string_view> fields_;
  std::int64_t row_ = 0;
};

class YoloReader final : public Reader {
 public:
  std::string_view name() const override { return "yolo"; }
  std::string_view annotations(const Source&) const override { return "YOLO"; }
  bool knows(const Source& source) const override {
    if (!source.bytes.empty()) return is_label_name(source.path) && are_labels(source.bytes);
    if (!is_folder(source.path)) return false;
    const std::vector<std::string> files = label_files(source.path);
    // A picture without objects has an empty file; of those that are not, one may be broken.
    constexpr std::size_t kMostFiles = 1000;
    constexpr int kMostFilled = 8;
    int filled = 0;
    for (std::size_t i = 0; i < std::min(files.size(), kMostFiles) && filled < kMostFilled; ++i) {
      const Result<MappedFile> file = MappedFile::open(files[i]);
      if (!file || file->bytes().empty()) continue;
      if (are_labels(file->bytes())) return true;
      ++filled;
    }
    return false;
  }
  Result<bool> read(const Source& source, Sink& sink) const override {
    Labels labels(sink);
    if (!source.bytes.empty()) {
      if (!labels.begin(class_names_for(fs::path(source.path).parent_path().string())))
        return !sink.stopped();
      if (std::optional<Error> problem = labels.read(source.path, source.bytes, {}))
        return *std::move(problem);
      labels.flush();
      return !sink.stopped();
    }
    if (!labels.begin(class_names_for(source.path))) return !sink.stopped();
    for (const std::string& path : label_files(source.path)) {
      if (sink.stopped() || !labels.wanted()) break;
      const Result<MappedFile> file = MappedFile::open(path);
      if (!file) return file.error();
      if (std::optional<Error> problem = labels.read(path, file->bytes(), path)) return *std::move(problem);
      labels.flush();
    }
    return !sink.stopped();
  }
};

}  // namespace

const Reader& yolo() {
  static const YoloReader reader;
  return reader;
}

}  // namespace trapline::inputs
