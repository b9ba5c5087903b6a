// Stretches of lines of JSON to numbers, several at a time. What a record means depends on the records before
// it (which keys there are, whether a key has lists), so a stretch is read with what is known when it begins,
// and takes only records that add nothing to that: all their keys are known, and their values are of the
// kinds that these had. Every other one is put aside, as text, for JsonRecords.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "inputs/json_key.hpp"

namespace trapline::inputs {

struct JsonStretch {
  enum class Kind : std::uint8_t { kInteger, kReal, kNull, kText };
  struct Cell {
    std::uint32_t record = 0;
    Kind kind = Kind::kNull;
    std::uint64_t bits = 0;  // of the integer, of the number; a text's place in `texts`
  };
  // Records [first, last) that were taken, with how often they have each key; behind them one that was not.
  struct Run {
    std::uint32_t first = 0, last = 0;
    std::vector<std::uint32_t> seen, objects;  // by id of the key
    bool put_aside = false;                    // `aside` is there
    std::string_view aside;
    std::uint32_t aside_line = 0;
  };

  std::string_view text;  // whole lines
  std::vector<Run> runs;
  std::size_t end = 0;                   // in `text`: what stands behind it was not looked at
  std::uint32_t lines = 0;               // before `end`
  std::vector<std::uint32_t> line_of;    // of each record, from the stretch's own line 0
  std::vector<std::vector<Cell>> cells;  // by id of the key
  std::vector<std::string_view> texts;
};

inline constexpr std::size_t kMaxJsonLine = std::size_t{64} << 20U;

// What is_blank() is for lines of JSON.
inline bool is_blank_line(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

// Reads stretch.text. `root`: of the `keys` keys, which nobody changes meanwhile. `full`: there will be no
// further columns.
void read_stretch(const JsonKey& root, std::size_t keys, bool full, JsonStretch& stretch);

}  // namespace trapline::inputs
