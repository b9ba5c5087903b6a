// A sink that keeps what a reader delivers, and one call that reads bytes as a file of a name.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inputs/reader.hpp"

namespace trapline::inputs {

struct Kept final : Sink {
  bool begin(const Column& column) override {
    begun.push_back(column);
    return wanted;
  }
  // Integers, and floats as far as they are whole; one number per element, in row-major order.
  bool piece(const Piece& piece) override {
    ++pieces;
    std::vector<double>& into = values[piece.column->name];
    std::vector<std::int64_t> index(piece.view.sizes.size(), 0);
    std::int64_t at = 0;
    for (std::int64_t left = piece.view.numel(); left > 0; --left) {
      into.push_back(element(piece.view, at));
      for (std::size_t d = index.size(); d-- > 0;) {
        at += piece.view.strides[d];
        if (++index[d] < piece.view.sizes[d]) break;
        at -= piece.view.strides[d] * piece.view.sizes[d];
        index[d] = 0;
      }
    }
    return pieces < most_pieces;
  }
  void malformed(const Column& column, std::int64_t row, std::int64_t /*line*/,
                 std::string_view text) override {
    odd.emplace_back(column.name + ":" + std::to_string(row) + ":" + std::string(text));
  }
  void skipped(std::string_view name, std::string_view why) override {
    left_out[std::string(name)] = std::string(why);
  }
  bool stopped() const override { return stop_after > 0 && pieces >= stop_after; }

  static double element(const TensorView& view, std::int64_t at) {
    const auto load = [&]<class T>(T value) {
      std::memcpy(&value, static_cast<const char*>(view.data) + at * static_cast<std::int64_t>(sizeof(T)),
                  sizeof(T));
      return static_cast<double>(value);
    };
    switch (view.dtype) {
      case DType::kBool:
      case DType::kUInt8:
        return load(std::uint8_t{});
      case DType::kInt8:
        return load(std::int8_t{});
      case DType::kInt16:
        return load(std::int16_t{});
      case DType::kInt32:
        return load(std::int32_t{});
      case DType::kInt64:
        return load(std::int64_t{});
      case DType::kFloat16:
      case DType::kBFloat16:
        return load(std::uint16_t{});
      case DType::kFloat32:
        return load(float{});
      case DType::kFloat64:
        return load(double{});
    }
    return 0;
  }

  bool wanted = true;
  int most_pieces = 1 << 30, stop_after = 0;
  int pieces = 0;
  std::vector<Column> begun;
  std::map<std::string, std::vector<double>> values;
  std::vector<std::string> odd;
  std::map<std::string, std::string> left_out;
};

// The error's line; "": read to the end; "stopped"; "unknown": no reader.
inline std::string read_bytes(const std::string& path, std::string_view bytes, Sink& sink) {
  const Source source{path, {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}};
  const Reader* reader = find_reader(source);
  if (reader == nullptr) return "unknown";
  const Result<bool> read = reader->read(source, sink);
  if (!read) return read.error().line();
  return *read ? "" : "stopped";
}

}  // namespace trapline::inputs
