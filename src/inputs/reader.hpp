// One interface for every file format: a reader hands over named columns of elements, piece by piece.
//
// A new format is one file with one Reader, one line in readers.cpp, and one folder of cases. Readers execute
// nothing, bounds-check every read, and hold no more than a bounded buffer or a memory map.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/tensor_view.hpp"

namespace trapline::inputs {

// A named tensor of a file: a column of a table, an array of an archive, a weight of a checkpoint.
struct Column {
  std::string name;  // "label", "model.embed_tokens.weight"; "" when the file holds just one
  DType dtype = DType::kInt64;
  std::vector<std::int64_t> sizes;  // sizes[0]: rows; -1 when not known beforehand (text formats)
};

// Consecutive rows of one column. Valid only during the call.
struct Piece {
  const Column* column = nullptr;
  TensorView view;             // sizes[0] rows; a 0-dim tensor for a scalar
  std::int64_t first_row = 0;  // of the view's row 0 in the column
  // Text formats and lists: row_of[i] is the row of view element i, for a column whose rows have several
  // values or none (a list of ids per line). Empty: element i of dimension 0 is row first_row + i.
  std::span<const std::int64_t> row_of{};
  // Text formats: the line of the first row, 1-based; 0: no lines.
  std::int64_t first_line = 0;
};

// What a reader calls. Return false to have no (more) pieces of this column.
class Sink {
 public:
  virtual ~Sink() = default;
  // Called once per column, before its pieces. False: the column is not wanted and is not decoded.
  virtual bool begin(const Column& column) = 0;
  virtual bool piece(const Piece& piece) = 0;
  // A value that is no number where one is expected ("cat" in a column of labels).
  virtual void malformed(const Column& column, std::int64_t row, std::string_view text) = 0;
  // Asked between pieces: true stops the reading (Ctrl-C).
  virtual bool stopped() const { return false; }
};

struct Source {
  std::string path;
  std::span<const std::byte> bytes;  // the whole file, memory-mapped; may be empty
};

// An error's `what` names the file, `why` the byte offset where one is known.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual std::string_view name() const = 0;           // "npy"
  virtual bool knows(const Source& source) const = 0;  // by magic first, by file name where none
  virtual Result<bool> read(const Source& source,
                            Sink& sink) const = 0;  // true: read to the end; false: stopped
};

std::span<const Reader* const> readers();
const Reader* find_reader(const Source& source);

}  // namespace trapline::inputs
