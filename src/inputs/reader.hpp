// One interface for every file format: a reader hands over named columns of elements, piece by piece.
//
// A new format is one file with one Reader, one line in formats.def, and one file of tests. Readers execute
// nothing, bounds-check every read, and hold no more than a bounded buffer or a memory map.
#pragma once

#include <cstdint>
#include <functional>
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
  // What core has no dtype for is widened: uint16 to int32, uint32 and uint64 to int64 (what does not fit
  // becomes the largest int64), 8-bit floats to float32, complex numbers to floats with a last dimension
  // of 2.
  DType dtype = DType::kInt64;
  std::vector<std::int64_t> sizes;  // sizes[0]: rows; -1 when not known beforehand (text formats)
  std::string_view stored{};  // its dtype in the file where that is another, "float8_e4m3fn"; static text
  bool text = false;          // its rows are texts: begin_text() and text(), and no pieces
};

// Consecutive rows of one column. Valid only during the call.
struct Piece {
  const Column* column = nullptr;
  // sizes[0] rows; a 0-dim tensor for a scalar. Its dtype is what counts: a column of text begins as int64
  // and goes on as float64 from its first value that is a number but no integer ("2.0", "nan").
  TensorView view;
  std::int64_t first_row = 0;  // of the view's row 0 in the column
  // Text formats and lists: row_of[i] is the row of view element i, for a column whose rows have several
  // values or none (a list of ids per line, a missing value). Empty: element i of dimension 0 is row
  // first_row + i. Rows of a binary format that are larger than a buffer come this way too, flattened.
  std::span<const std::int64_t> row_of{};
  bool scalars = false;  // with row_of: a row has one value or none, so an element needs no place in its row
  // Text formats: the line of the first row, 1-based; 0: no lines. The line of row r is
  // first_line + (r - first_row).
  std::int64_t first_line = 0;
};

struct ClassName {
  std::int64_t id = 0;
  std::string name;
  bool empty = false;  // a folder per class: there is nothing in it
};

// What a reader calls. Return false to have no (more) pieces of this column.
class Sink {
 public:
  virtual ~Sink() = default;
  // Called once per column, before its pieces. False: the column is not wanted and is not decoded. A source
  // of several tables (the splits of a data set) has a column of the same name for each.
  virtual bool begin(const Column& column) = 0;
  virtual bool piece(const Piece& piece) = 0;
  // A value that is no number where one is expected ("cat" in a column of labels). Empty text: a missing
  // value. The piece of its row does not hold it. `line`: of a text format, 1-based; 0: no lines.
  virtual void malformed(const Column& column, std::int64_t row, std::int64_t line,
                         std::string_view text) = 0;
  // As begin(), for a column of text. False: it is passed over, and skipped() says so.
  virtual bool begin_text(const Column& column) {
    static_cast<void>(column);
    return false;
  }
  // One row of it, in any order. False: no more of this column.
  virtual bool text(const Column& column, std::int64_t row, std::int64_t line, std::string_view text) {
    static_cast<void>(column), static_cast<void>(row), static_cast<void>(line), static_cast<void>(text);
    return false;
  }
  // The column's rows from `first_row` on lie in `path`: called before they come, where the source is a
  // folder or an index of several files. Not called: they lie in the source itself.
  virtual void file(const Column& column, std::string_view path, std::int64_t first_row) {
    static_cast<void>(column), static_cast<void>(path), static_cast<void>(first_row);
  }
  // A column that has no elements to check ("text", "binary"), or whose elements no dtype here can hold.
  virtual void skipped(std::string_view name, std::string_view why) {
    static_cast<void>(name), static_cast<void>(why);
  }
  // Something among the columns that is no tensor and was not looked into, and its class: "numpy.float64".
  virtual void object(std::string_view name, std::string_view type) {
    static_cast<void>(name), static_cast<void>(type);
  }
  // The classes that the source itself names for the column, after its begin().
  virtual void class_names(const Column& column, std::span<const ClassName> names) {
    static_cast<void>(column), static_cast<void>(names);
  }
  // Runs body(0) ... body(count - 1), in any order, on as many threads as the sink has; none of its other
  // functions may be called from there.
  virtual void parallel(std::int64_t count, const std::function<void(std::int64_t)>& body) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  }
  // Asked between pieces: true stops the reading (Ctrl-C).
  virtual bool stopped() const { return false; }
};

struct Source {
  std::string path;                  // a file or a folder
  std::span<const std::byte> bytes;  // the whole file, memory-mapped; empty for a folder
};

// An error's `what` names the file, `why` the byte offset where one is known.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual std::string_view name() const = 0;           // "npy"
  virtual bool knows(const Source& source) const = 0;  // by magic first, by file name where none
  // Programs pick columns of a table and fill or drop what is missing; arrays and weights are used as they
  // are.
  virtual bool is_table(const Source& source) const {
    static_cast<void>(source);
    return false;
  }
  // Its labels are those of boxes in pictures: the format's name, "COCO". Static text.
  virtual std::string_view annotations(const Source& source) const {
    static_cast<void>(source);
    return {};
  }
  virtual Result<bool> read(const Source& source,
                            Sink& sink) const = 0;  // true: read to the end; false: stopped
};

// What tables write for "no value", and "nan": "", "NA", "null", "None", ...
bool is_missing(std::string_view text);

// In the order in which they are asked.
std::span<const Reader* const> readers();
const Reader* find_reader(const Source& source);  // null: no reader knows it

}  // namespace trapline::inputs
