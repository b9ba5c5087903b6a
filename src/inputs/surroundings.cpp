#include "inputs/surroundings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/features.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/value_column.hpp"

namespace trapline::inputs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxInfo = std::size_t{16} << 20U;
constexpr std::string_view kNoValue = "__HIVE_DEFAULT_PARTITION__";

struct Partition {
  std::string name, value, folder;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    out += escape ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return out;
}

std::vector<Partition> partitions_of(const std::string& path) {
  std::vector<Partition> found;
  fs::path so_far;
  for (const fs::path& part : fs::path(path).parent_path()) {
    so_far /= part;
    const std::string text = part.string();
    const std::size_t sign = text.find('=');
    if (sign == text.npos || sign == 0 || text.starts_with('.')) continue;
    found.push_back({decoded(text.substr(0, sign)), decoded(text.substr(sign + 1)), so_far.string()});
  }
  return found;
}

using Classes = std::map<std::string, std::vector<ClassName>>;  // by column

std::optional<Classes> classes_in(const fs::path& folder) {
  std::error_code ignored;
  const fs::path info = folder / "dataset_info.json";
  if (!fs::is_regular_file(info, ignored)) return std::nullopt;
  const Result<MappedFile> file = MappedFile::open(info.string());
  if (!file || file->bytes().size() > kMaxInfo) return std::nullopt;
  return class_labels(as_text(file->bytes()));
}

// Of each table of the source. A DatasetDict has one for each split, with a dataset_info.json of its own.
std::vector<Classes> classes_of_splits(const std::string& path) {
  std::vector<Classes> classes;
  const Result<MappedFile> file = MappedFile::open((fs::path(path) / "dataset_dict.json").string());
  if (!file || file->bytes().size() > kMaxInfo) return classes;
  for (const std::string& name : split_names(as_text(file->bytes()))) {
    const bool plain = !name.empty() && name.find('/') == name.npos && !name.starts_with('.');
    classes.push_back(plain ? classes_in(fs::path(path) / name).value_or(Classes{}) : Classes{});
  }
  if (std::all_of(classes.begin(), classes.end(), [](const Classes& one) { return one.empty(); })) return {};
  return classes;
}

Classes classes_beside(const std::string& path) {
  std::error_code error;
  const bool saved = fs::is_regular_file(fs::path(path) / "state.json", error);  // by save_to_disk: a split
  fs::path folder = saved ? fs::path(path) : fs::path(path).parent_path();
  for (int up = 0; up < 3; ++up, folder = folder.parent_path()) {
    if (std::optional<Classes> found = classes_in(folder)) return std::move(*found);
    if (!folder.has_parent_path() || folder == folder.parent_path()) break;
  }
  return {};
}

class Around final : public Sink {
 public:
  Around(Sink& sink, std::vector<Classes> classes) : sink_(sink), classes_(std::move(classes)) {}

  bool begin(const Column& column) override {
    names_.insert(column.name);
    const bool wanted = sink_.begin(column);
    if (!column.sizes.empty()) rows_ = std::max(rows_, column.sizes[0]);
    if (classes_.empty()) return wanted;
    // Each table of the source begins its columns once.
    const Classes& classes = classes_[std::min(begun_[column.name]++, classes_.size() - 1)];
    const auto names = classes.find(column.name);
    if (wanted && names != classes.end()) sink_.class_names(column, names->second);
    return wanted;
  }
  bool begin_text(const Column& column) override {
    names_.insert(column.name);
    return sink_.begin_text(column);
  }
  bool text(const Column& column, std::int64_t row, std::int64_t line, std::string_view text) override {
    return sink_.text(column, row, line, text);
  }
  bool piece(const Piece& piece) override {
    const std::int64_t rows = piece.view.sizes.empty() ? 1 : piece.view.sizes[0];
    rows_ = std::max(rows_, piece.row_of.empty() ? piece.first_row + rows : piece.row_of.back() + 1);
    return sink_.piece(piece);
  }
  void malformed(const Column& column, std::int64_t row, std::int64_t line, std::string_view text) override {
    sink_.malformed(column, row, line, text);
  }
  void file(const Column& column, std::string_view path, std::int64_t first_row) override {
    sink_.file(column, path, first_row);
  }
  void skipped(std::string_view name, std::string_view why) override {
    names_.insert(std::string(name));
    sink_.skipped(name, why);
  }
  void object(std::string_view name, std::string_view type) override { sink_.object(name, type); }
  void class_names(const Column& column, std::span<const ClassName> names) override {
    sink_.class_names(column, names);
  }
  void parallel(std::int64_t count, const std::function<void(std::int64_t)>& body) override {
    sink_.parallel(count, body);
  }
  bool stopped() const override { return sink_.stopped(); }

  void add(const Partition& partition) {
    if (names_.contains(partition.name)) return;
    const bool missing = partition.value == kNoValue;
    const Number number = number_of(partition.value);
    if (!missing && number.kind != Number::Kind::kInteger && number.kind != Number::Kind::kFloat)
      return skipped(partition.name, "text");
    const bool real = number.kind == Number::Kind::kFloat && !number.huge;
    ValueColumn column(*this, {partition.name, real ? DType::kFloat64 : DType::kInt64, {1}}, 1);
    if (!column.begin()) return;
    column.in_file(partition.folder, 0);
    // All rows of the file have it; where nobody read any of them, how many is not known.
    constexpr std::int64_t kMost = std::int64_t{1} << 40U;
    const std::int64_t rows = std::clamp<std::int64_t>(rows_, 1, kMost);
    if (missing || number.huge) {
      for (std::int64_t row = 0; row < rows && column.wanted() && !stopped(); ++row)
        column.add(row, 0, missing ? Number{Number::Kind::kMissing} : number, missing ? "" : partition.value);
      return;
    }
    const std::array<std::int64_t, 1> sizes{rows};
    constexpr std::array<std::int64_t, 1> kNoStride{0};
    Piece piece;
    piece.column = &column.column();
    const void* value = &number.integer;
    if (real) value = &number.number;
    piece.view = {value, real ? DType::kFloat64 : DType::kInt64, sizes, kNoStride};
    sink_.piece(piece);
  }

 private:
  Sink& sink_;
  std::vector<Classes> classes_;  // of each table of the source; the last holds for those behind it
  std::unordered_map<std::string, std::size_t> begun_;
  std::unordered_set<std::string> names_;
  std::int64_t rows_ = 0;  // that were seen
};

}  // namespace

Result<bool> read_with_surroundings(const Reader& reader, const Source& source, Sink& sink) {
  const bool folder = source.bytes.empty();
  const std::vector<Partition> partitions = folder ? std::vector<Partition>{} : partitions_of(source.path);
  std::vector<Classes> classes = folder ? classes_of_splits(source.path) : std::vector<Classes>{};
  if (classes.empty()) {
    classes.push_back(classes_beside(source.path));
    if (classes[0].empty()) classes.clear();
  }
  if (partitions.empty() && classes.empty()) return reader.read(source, sink);
  Around around(sink, std::move(classes));
  Result<bool> whole = reader.read(source, around);
  for (const Partition& partition : partitions) around.add(partition);
  return whole;
}

}  // namespace trapline::inputs
