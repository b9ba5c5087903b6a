#include "inputs/elements.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

struct StoredInfo {
  DType dtype;
  std::uint8_t bytes;
};
constexpr std::array<StoredInfo, 16> kStored{{{DType::kBool, 1},
                                              {DType::kUInt8, 1},
                                              {DType::kInt8, 1},
                                              {DType::kInt16, 2},
                                              {DType::kInt32, 4},
                                              {DType::kInt64, 8},
                                              {DType::kFloat16, 2},
                                              {DType::kBFloat16, 2},
                                              {DType::kFloat32, 4},
                                              {DType::kFloat64, 8},
                                              {DType::kInt32, 2},
                                              {DType::kInt64, 4},
                                              {DType::kInt64, 8},
                                              {DType::kFloat32, 1},
                                              {DType::kFloat32, 1},
                                              {DType::kFloat32, 1}}};

const StoredInfo& info(Stored stored) { return kStored[static_cast<std::size_t>(stored)]; }

template <class T>
T swap_bytes(T value) {
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

// From unsigned integers of the stored width to the target.
template <class From, class To, class Widen>
void each(bool swapped, const std::byte* from, std::byte* to, std::size_t count, Widen&& widen) {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    const To wide = widen(swapped ? swap_bytes(value) : value);
    std::memcpy(to + i * sizeof(To), &wide, sizeof(To));
  }
}

template <class T>
void same(bool swapped, const std::byte* from, std::byte* to, std::size_t count) {
  if (!swapped) {
    std::memcpy(to, from, count * sizeof(T));
  } else {
    each<T, T>(true, from, to, count, [](T value) { return value; });
  }
}

// The OCP 8-bit formats. E4M3 has no infinity and one NaN per sign; E8M0 is a power of two.
float float8(std::uint8_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const bool top = exponent == (1 << exponent_bits) - 1;
  float value = 0;
  if (top && has_infinity) {
    value = mantissa == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (top && mantissa == (1 << mantissa_bits) - 1) {
    value = std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits);
  }
  return (bits & 0x80U) != 0 ? -value : value;
}

float float8_of(Stored stored, std::uint8_t bits) {
  if (stored == Stored::kFloat8E4M3) return float8(bits, 4, 3, false);
  if (stored == Stored::kFloat8E5M2) return float8(bits, 5, 2, true);
  return bits == 0xFF ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, bits - 127);
}

using Table = std::array<float, 256>;
const Table& float8_table(Stored stored) {
  const auto make = [](Stored kind) {
    Table table{};
    for (std::size_t bits = 0; bits < table.size(); ++bits) {
      table[bits] = float8_of(kind, static_cast<std::uint8_t>(bits));
    }
    return table;
  };
  static const std::array<Table, 3> tables{make(Stored::kFloat8E4M3), make(Stored::kFloat8E5M2),
                                           make(Stored::kFloat8E8M0)};
  return tables[static_cast<std::size_t>(stored) - static_cast<std::size_t>(Stored::kFloat8E4M3)];
}

std::vector<std::int64_t> row_major(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) {
    // A product that does not fit belongs to a tensor with a zero in front; its strides are never used.
    if (__builtin_mul_overflow(strides[d], std::max<std::int64_t>(sizes[d], 1), &strides[d - 1])) {
      strides[d - 1] = 0;
    }
  }
  return strides;
}

}  // namespace

std::string_view name_of(Stored stored) {
  switch (stored) {
    case Stored::kUInt16:
      return "uint16";
    case Stored::kUInt32:
      return "uint32";
    case Stored::kUInt64:
      return "uint64";
    case Stored::kFloat8E4M3:
      return "float8_e4m3fn";
    case Stored::kFloat8E5M2:
      return "float8_e5m2";
    case Stored::kFloat8E8M0:
      return "float8_e8m0fnu";
    default:
      return {};
  }
}

DType Encoding::dtype() const { return info(stored).dtype; }
std::size_t Encoding::bytes() const { return info(stored).bytes; }

void convert(Encoding encoding, const std::byte* from, std::byte* to, std::size_t count) {
  const bool swapped = encoding.swapped;
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  switch (encoding.stored) {
    case Stored::kBool:
    case Stored::kUInt8:
    case Stored::kInt8:
      return same<std::uint8_t>(false, from, to, count);
    case Stored::kInt16:
    case Stored::kFloat16:
    case Stored::kBFloat16:
      return same<std::uint16_t>(swapped, from, to, count);
    case Stored::kInt32:
    case Stored::kFloat32:
      return same<std::uint32_t>(swapped, from, to, count);
    case Stored::kInt64:
    case Stored::kFloat64:
      return same<std::uint64_t>(swapped, from, to, count);
    case Stored::kUInt16:
      return each<std::uint16_t, std::int32_t>(swapped, from, to, count, [](std::uint16_t v) { return v; });
    case Stored::kUInt32:
      return each<std::uint32_t, std::int64_t>(swapped, from, to, count, [](std::uint32_t v) { return v; });
    case Stored::kUInt64:
      return each<std::uint64_t, std::int64_t>(swapped, from, to, count, [](std::uint64_t v) {
        return v > static_cast<std::uint64_t>(kMax) ? kMax : static_cast<std::int64_t>(v);
      });
    case Stored::kFloat8E4M3:
    case Stored::kFloat8E5M2:
    case Stored::kFloat8E8M0: {
      const Table& table = float8_table(encoding.stored);
      return each<std::uint8_t, float>(false, from, to, count, [&table](std::uint8_t v) { return table[v]; });
    }
  }
}

DenseDelivery::DenseDelivery(Sink& sink, const Column& column, Encoding encoding)
    : sink_(sink),
      column_(column),
      encoding_(encoding),
      sizes_(column.sizes),
      strides_(row_major(column.sizes)) {
  const std::span<const std::int64_t> sizes(column.sizes);
  row_elements_ = sizes.empty() ? 1 : product(sizes.subspan(1)).value_or(0);
  const std::size_t element = encoding.bytes();
  const std::size_t widest = std::max(element, size_of(encoding.dtype()));
  const std::size_t fit = kBufferBytes / widest;
  const auto row = static_cast<std::size_t>(row_elements_);
  unit_ = row > 0 && row <= fit ? row * element : element;
  capacity_ = fit * element / unit_ * unit_;
}

bool DenseDelivery::all(std::span<const std::byte> bytes) {
  const std::size_t width = size_of(encoding_.dtype());
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % width == 0;
  if (bytes.empty()) return true;
  if (!encoding_.direct() || !aligned) return put(bytes) && finish();
  if (column_.sizes.empty()) return deliver_rows(bytes.data(), 1);
  const auto row_bytes = static_cast<std::size_t>(row_elements_) * width;
  const std::int64_t rows = column_.sizes[0];
  const auto step = static_cast<std::int64_t>(std::max<std::size_t>(kMappedPieceBytes / row_bytes, 1));
  for (std::int64_t row = 0; row < rows && wanted_; row += step) {
    deliver_rows(bytes.data() + static_cast<std::size_t>(row) * row_bytes, std::min(step, rows - row));
  }
  return wanted_;
}

bool DenseDelivery::deliver_rows(const void* data, std::int64_t rows) {
  if (!sizes_.empty()) sizes_[0] = rows;
  Piece piece;
  piece.column = &column_;
  piece.view = {data, column_.dtype, sizes_, strides_};
  piece.first_row = next_row_;
  next_row_ += rows;
  wanted_ = sink_.piece(piece) && !sink_.stopped();
  return wanted_;
}

bool DenseDelivery::put(std::span<const std::byte> bytes) {
  if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<std::uint64_t[]>(kBufferBytes / 8);
  while (!bytes.empty() && wanted_) {
    const std::size_t take = std::min(bytes.size(), capacity_ - filled_);
    std::memcpy(reinterpret_cast<std::byte*>(buffer_.get()) + filled_, bytes.data(), take);
    filled_ += take;
    bytes = bytes.subspan(take);
    if (filled_ == capacity_) deliver_buffer();
  }
  return wanted_;
}

bool DenseDelivery::finish() {
  if (filled_ > 0 && wanted_) deliver_buffer();
  return wanted_;
}

bool DenseDelivery::deliver_buffer() {
  const std::size_t count = filled_ / encoding_.bytes();
  filled_ = 0;
  const void* data = buffer_.get();
  if (!encoding_.direct()) {
    if (converted_ == nullptr) converted_ = std::make_unique_for_overwrite<std::uint64_t[]>(kBufferBytes / 8);
    convert(encoding_, reinterpret_cast<const std::byte*>(buffer_.get()),
            reinterpret_cast<std::byte*>(converted_.get()), count);
    data = converted_.get();
  }
  if (column_.sizes.empty()) return deliver_rows(data, 1);
  const auto row = static_cast<std::size_t>(row_elements_);
  if (unit_ == row * encoding_.bytes()) {
    return count / row > 0 ? deliver_rows(data, static_cast<std::int64_t>(count / row)) : wanted_;
  }
  // A row is larger than the buffer: its elements go one by one, each with its row.
  row_of_.resize(count);
  const std::int64_t first_row = next_row_;
  for (std::int64_t& its_row : row_of_) {
    its_row = next_row_;
    if (++next_element_ == row_elements_) next_element_ = 0, ++next_row_;
  }
  const std::array<std::int64_t, 1> sizes{static_cast<std::int64_t>(count)};
  constexpr std::array<std::int64_t, 1> kStrides{1};
  Piece piece;
  piece.column = &column_;
  piece.view = {data, column_.dtype, sizes, kStrides};
  piece.first_row = first_row;
  piece.row_of = row_of_;
  wanted_ = sink_.piece(piece) && !sink_.stopped();
  return wanted_;
}

bool deliver_strided(Sink& sink, const Column& column, Encoding encoding, std::span<const std::byte> storage,
                     std::int64_t offset, std::span<const std::int64_t> strides) {
  const std::int64_t elements = product(column.sizes).value_or(0);
  if (elements == 0) return true;
  const std::size_t width = encoding.bytes();
  const auto start = static_cast<std::size_t>(offset) * width;
  TensorView view{storage.data() + start, column.dtype, column.sizes, strides};
  if (view.is_contiguous()) {
    DenseDelivery delivery(sink, column, encoding);
    return delivery.all(storage.subspan(start, static_cast<std::size_t>(elements) * width));
  }
  if (encoding.direct() && reinterpret_cast<std::uintptr_t>(storage.data()) % width == 0) {
    Piece piece;
    piece.column = &column;
    piece.view = view;
    return sink.piece(piece) && !sink.stopped();
  }
  // Gathered in row-major order: an odometer over the dimensions.
  DenseDelivery delivery(sink, column, encoding);
  std::vector<std::int64_t> index(column.sizes.size(), 0);
  std::int64_t at = offset;
  for (std::int64_t left = elements; left > 0; --left) {
    if (!delivery.put(storage.subspan(static_cast<std::size_t>(at) * width, width))) return false;
    for (std::size_t d = index.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < column.sizes[d]) break;
      at -= strides[d] * column.sizes[d];
      index[d] = 0;
    }
  }
  return delivery.finish();
}

}  // namespace trapline::inputs
