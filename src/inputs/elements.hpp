// Dense elements as binary formats store them, to pieces: straight from the memory map where they lie aligned
// in a dtype of core, else through one bounded buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "inputs/reader.hpp"

namespace trapline::inputs {

// How a file stores an element. The first ten are the dtypes of core, element by element; the others have no
// dtype there and become one that holds all their values.
enum class Stored : std::uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  // Widened:
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat8E4M3,
  kFloat8E5M2,
  kFloat8E8M0,
};

// torch's name of a dtype that core does not have, "float8_e4m3fn"; empty: core's name is the one.
std::string_view name_of(Stored stored);

struct Encoding {
  Stored stored = Stored::kInt64;
  bool swapped = false;  // the bytes of an element lie the other way round

  DType dtype() const;        // of the pieces
  std::size_t bytes() const;  // of one stored element
  // No element has to be rewritten.
  bool direct() const { return !swapped && stored <= Stored::kFloat64; }
};

// Turns `count` stored elements at `from` into elements of encoding.dtype() at `to`; both may be unaligned.
void convert(Encoding encoding, const std::byte* from, std::byte* to, std::size_t count);

inline constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
// Between two pieces of this size the sink is asked whether to stop.
inline constexpr std::size_t kMappedPieceBytes = std::size_t{16} << 20U;

// Row-major elements of one column, all at once or as they come out of a decompressor. Each call returns
// whether the sink wants more.
class DenseDelivery {
 public:
  // `column` must outlive the delivery; column.sizes must have a product().
  DenseDelivery(Sink& sink, const Column& column, Encoding encoding);
  // The whole column; `bytes` is mapped memory.
  bool all(std::span<const std::byte> bytes);
  // The next bytes, cut anywhere.
  bool put(std::span<const std::byte> bytes);
  // What is left in the buffer. Bytes of an element that is not whole are dropped.
  bool finish();

 private:
  bool deliver_rows(const void* data, std::int64_t rows);
  bool deliver_buffer();

  Sink& sink_;
  const Column& column_;
  Encoding encoding_;
  std::vector<std::int64_t> sizes_, strides_;  // of a piece
  std::int64_t row_elements_ = 1;
  std::int64_t next_row_ = 0;
  std::int64_t next_element_ = 0;  // of next_row_; only rows that are larger than the buffer
  std::size_t unit_ = 0;           // stored bytes that a piece is a multiple of: a row, or an element
  std::size_t capacity_ = 0, filled_ = 0;
  std::unique_ptr<std::uint64_t[]> buffer_, converted_;
  std::vector<std::int64_t> row_of_;
  bool wanted_ = true;
};

// Elements that lie strided in `storage` (a view that torch saved). The caller has checked that every element
// lies inside. Offsets and strides are in elements.
bool deliver_strided(Sink& sink, const Column& column, Encoding encoding, std::span<const std::byte> storage,
                     std::int64_t offset, std::span<const std::int64_t> strides);

}  // namespace trapline::inputs
