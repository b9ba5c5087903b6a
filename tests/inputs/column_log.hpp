// A sink that writes down what it is told, by column: two readings of the same records must tell the same.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "inputs/reader.hpp"

namespace trapline::inputs {

struct ColumnLog final : Sink {
  bool begin(const Column& column) override {
    order += "begin " + column.name + "\n";
    return column.name.empty() || column.name.back() != '~';  // keys that nobody wants
  }
  bool begin_text(const Column& column) override {
    order += "text " + column.name + "\n";
    return column.name.starts_with('t');
  }
  bool text(const Column& column, std::int64_t row, std::int64_t line, std::string_view text) override {
    note(column, "text", row, line) += text;
    return ++texts[column.name] < most_texts;
  }
  bool piece(const Piece& piece) override {
    for (std::int64_t i = 0; i < piece.view.sizes[0]; ++i) {
      const std::int64_t row =
          piece.row_of.empty() ? piece.first_row + i : piece.row_of[static_cast<std::size_t>(i)];
      std::uint64_t bits = 0;
      std::memcpy(&bits, static_cast<const char*>(piece.view.data) + i * 8, 8);
      note(*piece.column, piece.scalars ? "one" : "some", row, piece.first_line + row - piece.first_row) +=
          std::string(name_of(piece.view.dtype)) + " " + std::to_string(bits);
    }
    return ++pieces < most_pieces;
  }
  void malformed(const Column& column, std::int64_t row, std::int64_t line, std::string_view text) override {
    // Pieces come when they are full, what is malformed at once.
    odd[column.name] += std::to_string(row) + " " + std::to_string(line) + " " + std::string(text) + "\n";
  }
  void skipped(std::string_view name, std::string_view why) override {
    order += "skipped " + std::string(name) + ": " + std::string(why) + "\n";
  }
  void parallel(std::int64_t count, const std::function<void(std::int64_t)>& body) override {
    ++loops;
    if (!threads) return Sink::parallel(count, body);
    std::vector<std::thread> running;
    for (std::int64_t i = 0; i < count; ++i) running.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : running) thread.join();
  }

  bool operator==(const ColumnLog& other) const {
    return order == other.order && told == other.told && odd == other.odd;
  }
  std::string& note(const Column& column, const char* what, std::int64_t row, std::int64_t line) {
    std::string& all = told[column.name];
    return all += std::string("\n") + what + " " + std::to_string(row) + " " + std::to_string(line) + " ";
  }

  bool threads = false;
  int most_texts = 1 << 30, most_pieces = 1 << 30;
  int pieces = 0, loops = 0;
  std::string order;
  std::map<std::string, std::string> told, odd;
  std::map<std::string, int> texts;
};

// The error's line; else whether it was read to the end.
inline std::string outcome(const Result<bool>& read) {
  if (!read) return read.error().line();
  return *read ? "whole" : "stopped";
}

}  // namespace trapline::inputs
