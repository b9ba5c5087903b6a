// Any bytes as a file of any format: the readers neither fail nor hand out a piece that lies outside what
// they hold or contradicts its column. The input's first line is the file's name, which says which reader it
// is for.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../inputs/column_log.hpp"
#include "inputs/json_lines.hpp"
#include "inputs/reader.hpp"

namespace {

using namespace trapline;
using inputs::Column;
using inputs::Piece;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Checked final : inputs::Sink {
  bool begin(const Column& column) override {
    ++columns;
    for (const std::int64_t size : column.sizes) require(size >= -1);
    return true;
  }
  bool piece(const Piece& piece) override {
    const TensorView& view = piece.view;
    require(piece.column != nullptr && view.sizes.size() == view.strides.size());
    require(piece.first_row >= 0 && piece.first_line >= 0);
    std::int64_t last = 0;
    for (std::size_t d = 0; d < view.sizes.size(); ++d) {
      require(view.sizes[d] >= 0 && view.strides[d] >= 0);
      last += std::max<std::int64_t>(view.sizes[d] - 1, 0) * view.strides[d];
    }
    if (!piece.row_of.empty()) {
      require(view.sizes.size() == 1 && static_cast<std::int64_t>(piece.row_of.size()) == view.sizes[0]);
      require(std::is_sorted(piece.row_of.begin(), piece.row_of.end()));
      require(piece.row_of[0] == piece.first_row);
    }
    if (view.numel() == 0) return true;
    // The sanitizer sees whether the elements are there: the first, the last, and some between.
    const std::size_t width = size_of(view.dtype);
    const auto* data = static_cast<const volatile unsigned char*>(view.data);
    for (std::int64_t at = 0; at <= last; at += std::max<std::int64_t>(last / 64, 1)) {
      sum = sum + data[static_cast<std::size_t>(at) * width];
    }
    sum = sum + data[static_cast<std::size_t>(last) * width + width - 1];
    return true;
  }
  void malformed(const Column&, std::int64_t row, std::int64_t line, std::string_view text) override {
    require(row >= 0 && line >= 0);
    for (const char c : text) sum = sum + static_cast<unsigned char>(c);
  }
  bool stopped() const override { return columns > 100000; }
  int columns = 0;
  unsigned sum = 0;
};

// Lines that are read in stretches say what they say one after the other.
void require_same_lines(const inputs::Source& source) {
  inputs::ColumnLog alone;
  const std::string line_by_line =
      inputs::outcome(inputs::read_json_lines(source, alone, source.bytes.size() + 1));
  for (const std::size_t stretch : {std::size_t{1}, std::size_t{48}}) {
    inputs::ColumnLog together;
    require(inputs::outcome(inputs::read_json_lines(source, together, stretch)) == line_by_line);
    require(alone == together);
  }
}

// Of a DuckDB database only DuckDB reads anything, and that is another program.
[[maybe_unused]] const int g_no_other_program = ::setenv("TRAPLINE_DUCKDB", "off", 1);

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.substr(0, 64).find('\n');
  if (end == input.npos || input.substr(0, end).find_first_of(std::string_view("/\0", 2)) != input.npos)
    return 0;
  // A copy of its own, as aligned as a memory map, so that the sanitizer sees its exact end.
  const std::string_view contents = input.substr(end + 1);
  const std::unique_ptr<std::byte[]> bytes(new std::byte[contents.size()]);
  std::memcpy(bytes.get(), contents.data(), contents.size());
  const inputs::Source source{"no-such-folder/" + std::string(input.substr(0, end)),
                              {bytes.get(), contents.size()}};
  const inputs::Reader* reader = inputs::find_reader(source);
  if (reader == nullptr) return 0;
  if (reader->name() == "jsonl") require_same_lines(source);
  Checked sink;
  const Result<bool> read = reader->read(source, sink);
  if (!read) require(!read.error().what.empty() && read.error().line().find('\n') == std::string::npos);
  return 0;
}
