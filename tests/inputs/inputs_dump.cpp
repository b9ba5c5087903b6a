// What the readers of `trapline check` deliver, as JSON lines: the tests compare it with what the format's
// own tool reads. inputs_dump PATH [COLUMN...]: only these columns, when some are named.
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "inputs/mapped_file.hpp"
#include "inputs/reader.hpp"
#include "inputs/surroundings.hpp"

namespace {

using namespace trapline;
using inputs::Column;
using inputs::Piece;

std::string quoted(std::string_view raw) {
  std::string out = "\"";
  for (const char c : raw) {
    char buffer[8];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || byte < 0x20) {
      std::snprintf(buffer, sizeof buffer, "\\u%04x", byte);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string list(std::span<const std::int64_t> numbers) {
  std::string out = "[";
  for (const std::int64_t number : numbers) out += (out.size() > 1 ? "," : "") + std::to_string(number);
  return out + "]";
}

template <class T>
T load(const void* data, std::int64_t element) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + element * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

std::string real(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  return buffer;
}

// Half-precision numbers as their bits: the test compares those.
std::string element(const TensorView& view, std::int64_t at) {
  switch (view.dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return std::to_string(load<std::uint8_t>(view.data, at));
    case DType::kInt8:
      return std::to_string(load<std::int8_t>(view.data, at));
    case DType::kInt16:
      return std::to_string(load<std::int16_t>(view.data, at));
    case DType::kInt32:
      return std::to_string(load<std::int32_t>(view.data, at));
    case DType::kInt64:
      return std::to_string(load<std::int64_t>(view.data, at));
    case DType::kFloat16:
    case DType::kBFloat16:
      return std::to_string(load<std::uint16_t>(view.data, at));
    case DType::kFloat32:
      return real(static_cast<double>(load<float>(view.data, at)));
    case DType::kFloat64:
      return real(load<double>(view.data, at));
  }
  return "null";
}

struct Dump final : inputs::Sink {
  std::vector<std::string> only;
  std::map<std::string, std::pair<std::string, std::int64_t>> files;  // of each column, and its first row
  bool begin(const Column& column) override {
    bool wanted = only.empty();
    files.erase(column.name);
    for (const std::string& name : only) wanted |= name == column.name;
    std::printf("{\"begin\":%s,\"dtype\":\"%s\",\"sizes\":%s}\n", quoted(column.name).c_str(),
                std::string(name_of(column.dtype)).c_str(), list(column.sizes).c_str());
    return wanted;
  }
  bool piece(const Piece& piece) override {
    const TensorView& view = piece.view;
    const auto& file = files[piece.column->name];
    std::string values;
    std::vector<std::int64_t> index(view.sizes.size(), 0);
    std::int64_t at = 0;
    for (std::int64_t left = view.numel(); left > 0; --left) {
      values += (values.empty() ? "" : ",") + element(view, at);
      for (std::size_t d = index.size(); d-- > 0;) {
        at += view.strides[d];
        if (++index[d] < view.sizes[d]) break;
        at -= view.strides[d] * view.sizes[d];
        index[d] = 0;
      }
    }
    std::printf("{\"piece\":%s,\"dtype\":\"%s\",\"sizes\":%s,\"first_row\":%" PRId64
                ",\"first_line\":%" PRId64 ",\"file\":%s,\"file_row\":%" PRId64
                ",\"row_of\":%s,\"values\":[%s]}\n",
                quoted(piece.column->name).c_str(), std::string(name_of(view.dtype)).c_str(),
                list(view.sizes).c_str(), piece.first_row, piece.first_line, quoted(file.first).c_str(),
                file.second, list(piece.row_of).c_str(), values.c_str());
    return true;
  }
  void malformed(const Column& column, std::int64_t row, std::int64_t line, std::string_view raw) override {
    std::printf("{\"malformed\":%s,\"row\":%" PRId64 ",\"line\":%" PRId64 ",\"text\":%s}\n",
                quoted(column.name).c_str(), row, line, quoted(raw).c_str());
  }
  void file(const Column& column, std::string_view path, std::int64_t first_row) override {
    files[column.name] = {std::string(path), first_row};
  }
  void skipped(std::string_view name, std::string_view why) override {
    std::printf("{\"skipped\":%s,\"why\":%s}\n", quoted(name).c_str(), quoted(why).c_str());
  }
  void object(std::string_view name, std::string_view type) override {
    std::printf("{\"object\":%s,\"type\":%s}\n", quoted(name).c_str(), quoted(type).c_str());
  }
  void class_names(const Column& column, std::span<const inputs::ClassName> names) override {
    std::string out;
    for (const inputs::ClassName& name : names) {
      out += (out.empty() ? "[" : ",[") + std::to_string(name.id) + "," + quoted(name.name) + "]";
    }
    std::printf("{\"class_names\":%s,\"names\":[%s]}\n", quoted(column.name).c_str(), out.c_str());
  }
};

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.line().c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string path = argv[1];
  const Result<inputs::MappedFile> file = inputs::MappedFile::open(path);
  if (!file) return fail(file.error());
  const inputs::Source source{path, file->bytes()};
  const inputs::Reader* reader = inputs::find_reader(source);
  if (reader == nullptr) return fail({"cannot read " + path, "no reader knows this format", ""});
  std::printf("{\"reader\":%s}\n", quoted(reader->name()).c_str());
  Dump dump;
  dump.only.assign(argv + 2, argv + argc);
  const Result<bool> read = reader->read(source, dump);
  if (!read) return fail(read.error());
  std::printf("{\"end\":%s}\n", *read ? "true" : "false");
  return 0;
}
