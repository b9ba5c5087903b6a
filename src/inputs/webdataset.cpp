// WebDataset: a tar of samples. Members one after the other that are named alike up to the first dot of their
// base name are one sample, a row; what stands behind that dot is the column. So group_by_keys() and
// base_plus_ext() of webdataset/tariterators.py have it; which endings are what is in its autodecode.py.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/elements.hpp"
#include "inputs/formats.hpp"
#include "inputs/json_records.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/npy_header.hpp"
#include "inputs/tar.hpp"
#include "inputs/value_column.hpp"

namespace trapline::inputs {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kMaxColumns = 1024;
constexpr std::size_t kMaxJson = std::size_t{64} << 20U;
constexpr std::size_t kElementsPerPiece = std::size_t{1} << 14U;
constexpr std::size_t kBytesBetweenReleases = std::size_t{8} << 20U;

enum class Kind : std::uint8_t { kInteger, kJson, kArray, kText, kPicture, kOther };

struct Ending {
  std::string_view end;
  Kind kind;
};
constexpr Ending kEndings[] = {
    {"cls", Kind::kInteger},     {"cls2", Kind::kInteger},  {"class", Kind::kInteger},
    {"count", Kind::kInteger},   {"index", Kind::kInteger}, {"inx", Kind::kInteger},
    {"id", Kind::kInteger},      {"json", Kind::kJson},     {"jsn", Kind::kJson},
    {"npy", Kind::kArray},       {"txt", Kind::kText},      {"text", Kind::kText},
    {"transcript", Kind::kText}, {"jpg", Kind::kPicture},   {"jpeg", Kind::kPicture},
    {"png", Kind::kPicture},     {"ppm", Kind::kPicture},   {"pgm", Kind::kPicture},
    {"pbm", Kind::kPicture},     {"pnm", Kind::kPicture},   {"webp", Kind::kPicture},
    {"bmp", Kind::kPicture},     {"gif", Kind::kPicture},   {"tif", Kind::kPicture},
    {"tiff", Kind::kPicture},
};

// By the last part: "seg.png" is a picture.
Kind kind_of(std::string_view column) {
  const std::string_view last = column.substr(column.rfind('.') + 1);
  const auto* found = std::ranges::find(kEndings, last, &Ending::end);
  return found == std::end(kEndings) ? Kind::kOther : found->kind;
}

std::string_view why_not(Kind kind) {
  return kind == Kind::kText ? "text" : kind == Kind::kPicture ? "pictures" : "not looked into";
}

// Passes a sample's values on, and says which member they are from.
class NamedSink final : public Sink {
 public:
  NamedSink(Sink& sink, std::string source) : sink_(sink), source_(std::move(source)) {}
  void member(std::string_view name, std::int64_t row) {
    member_ = source_ + "/" + std::string(name);
    row_ = row;
  }

  bool begin(const Column& column) override { return sink_.begin(column); }
  bool piece(const Piece& piece) override {
    tell(*piece.column, row_);
    return sink_.piece(piece);
  }
  void malformed(const Column& column, std::int64_t row, std::int64_t line, std::string_view text) override {
    tell(column, row);
    sink_.malformed(column, row, line, text);
  }
  void skipped(std::string_view name, std::string_view why) override { sink_.skipped(name, why); }
  bool stopped() const override { return sink_.stopped(); }

 private:
  void tell(const Column& column, std::int64_t row) {
    const auto [told, fresh] = told_.try_emplace(&column, row);
    if (!fresh && told->second == row) return;
    told->second = row;
    // Rows count through the archive. A row before this one is told of late: its member is not known.
    sink_.file(column, row == row_ ? member_ : source_, 0);
  }

  Sink& sink_;
  std::string source_, member_;
  std::int64_t row_ = 0;
  std::unordered_map<const Column*, std::int64_t> told_;
};

// One ending: its columns, or how many members were passed over.
struct Part {
  Kind kind = Kind::kOther;
  std::int64_t members = 0;
  std::int64_t last_row = -1;
  std::unique_ptr<ValueColumn> integers;
  std::unique_ptr<JsonRecords> records;
  std::unique_ptr<Column> array;
  bool wanted = true;
};

class Samples {
 public:
  Samples(const Source& source, Sink& sink) : path_(source.path), sink_(sink, source.path) {}

  // Empty, or what is wrong with the member.
  std::string member(const TarMember& member) {
    const std::size_t base = member.name.rfind('/') + 1;
    const std::size_t dot = member.name.find('.', base);
    // Names that begin with a dot are a system's own files; WebDataset's begin and end with two underscores.
    if (dot == base || dot == member.name.npos || member.name.starts_with("__")) return "";
    const std::string_view key = std::string_view(member.name).substr(0, dot);
    std::string name = member.name.substr(dot + 1);
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (row_ < 0 || key != key_) {
      key_ = key;
      ++row_;
    }
    auto found = parts_.find(name);
    if (found == parts_.end()) {
      if (parts_.size() == kMaxColumns) return "more than 1024 different endings";
      found = parts_.emplace(name, Part{kind_of(name), 0, -1, nullptr, nullptr, nullptr}).first;
    }
    Part& part = found->second;
    ++part.members;
    if (part.last_row == row_) return "the sample has two of it";
    part.last_row = row_;
    sink_.member(member.name, row_);
    switch (part.kind) {
      case Kind::kInteger:
        integer(part, name, as_text(member.data));
        return "";
      case Kind::kJson:
        return json(part, name, member.data);
      case Kind::kArray:
        return array(part, name, member.data);
      default:
        return "";
    }
  }

  void end() {
    for (const auto& [name, part] : parts_) {
      if (part.kind < Kind::kText) continue;
      sink_.skipped(name, std::string(why_not(part.kind)) + ": " + std::to_string(part.members));
    }
  }

 private:
  // int(data) in Python: blanks around it do not count, and 3.0 is none.
  void integer(Part& part, const std::string& name, std::string_view text) {
    if (part.integers == nullptr) {
      part.integers = std::make_unique<ValueColumn>(sink_, Column{name, DType::kInt64, {-1}}, 1);
      part.integers->begin();
    }
    constexpr std::string_view kBlanks = " \t\r\n\v\f";
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
    const Number number = number_of(text);
    if (number.kind == Number::Kind::kInteger) {
      part.integers->add(row_, 0, number.integer);
      part.integers->flush();
    } else {
      part.integers->malformed(row_, 0, text);
    }
  }

  std::string json(Part& part, const std::string& name, Bytes data) {
    if (data.size() > kMaxJson) return "longer than 64 MiB";
    if (part.records == nullptr) part.records = std::make_unique<JsonRecords>(sink_, name);
    ondemand::document document;
    std::string problem;
    if (const auto code = parser_.iterate(text_.of(as_text(data))).get(document); code != simdjson::SUCCESS) {
      problem = json_problem(code);
    } else {
      problem = part.records->record(document, row_, 0);
    }
    part.records->flush();
    return problem;
  }

  std::string array(Part& part, const std::string& name, Bytes data) {
    const Result<NpyHeader> header = read_npy_header(data.first(std::min(data.size(), kMaxNpyHeader)), path_);
    if (!header) return header.error().why + " of the member";
    if (!header->no_numbers.empty()) {
      sink_.skipped(name, header->no_numbers);
      return "";
    }
    Bytes left = data.subspan(header->data_offset);
    const auto claimed = static_cast<std::uint64_t>(header->data_bytes);
    if (left.size() < claimed) {
      return "its header claims " + std::to_string(claimed) + " bytes of elements, " +
             std::to_string(left.size()) + " are there";
    }
    if (part.array == nullptr) {
      part.array = std::make_unique<Column>(Column{name, header->encoding.dtype(), {-1}});
      part.wanted = sink_.begin(*part.array);
    }
    left = left.first(claimed);
    const std::size_t width = header->encoding.bytes();
    const std::size_t most = kElementsPerPiece * width;
    while (part.wanted && !left.empty()) {
      const Bytes now = left.first(std::min(left.size(), most));
      left = left.subspan(now.size());
      part.wanted = elements(*part.array, header->encoding, now, now.size() / width);
    }
    return "";
  }

  // Flat, every element with its row.
  bool elements(const Column& column, Encoding encoding, Bytes data, std::size_t count) {
    buffer_.resize(count);  // 8 bytes for each
    convert(encoding, data.data(), reinterpret_cast<std::byte*>(buffer_.data()), count);
    rows_.assign(count, row_);
    const std::int64_t sizes[] = {static_cast<std::int64_t>(count)};
    constexpr std::int64_t kStrides[] = {1};
    Piece piece;
    piece.column = &column;
    piece.view = {buffer_.data(), encoding.dtype(), sizes, kStrides};
    piece.first_row = row_;
    piece.row_of = rows_;
    return sink_.piece(piece);
  }

  std::string path_;
  NamedSink sink_;
  std::map<std::string, Part, std::less<>> parts_;
  std::string key_;
  std::int64_t row_ = -1;
  JsonText text_;
  ondemand::parser parser_;
  std::vector<std::uint64_t> buffer_;
  std::vector<std::int64_t> rows_;
};

class WebDatasetReader final : public Reader {
 public:
  std::string_view name() const override { return "webdataset"; }
  bool knows(const Source& source) const override {
    return is_tar(source.bytes) || source.path.ends_with(".tar");
  }

  Result<bool> read(const Source& source, Sink& sink) const override {
    Tar tar(source.bytes);
    Samples samples(source, sink);
    std::size_t released = 0;
    std::size_t start = 0;
    while (const std::optional<TarMember> member = tar.next()) {
      if (const std::string problem = samples.member(*member); !problem.empty()) {
        samples.end();
        return damaged(source.path, start, "member " + in_quotes(member->name) + ": " + problem,
                       "write the archive again");
      }
      start = tar.offset();
      if (start - released >= kBytesBetweenReleases) {
        release_pages(source.bytes.subspan(released, start - released));
        released = start;
      }
      if (sink.stopped()) break;
    }
    samples.end();
    if (!tar.problem().empty()) return damaged(source.path, tar.offset(), tar.problem());
    return !sink.stopped();
  }
};

}  // namespace

const Reader& webdataset() {
  static const WebDatasetReader reader;
  return reader;
}

}  // namespace trapline::inputs
