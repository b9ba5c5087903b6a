// What a .json file is, by the values of the object at its top: nothing is decoded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trapline::inputs {

struct JsonOutline {
  enum class Kind : std::uint8_t {
    kOther,
    kColumns,  // {"label": [0, 1], "x": [0.5, 0.25]}: one length; and pandas' {"label": {"0": 0, "1": 1}}
    kSplit,    // pandas' {"columns": ["label", "x"], "data": [[0, 0.5], [1, 0.25]]}
    kRecords,  // {"version": 1, "data": [{"label": 0}, {"label": 1}]}
  };
  Kind kind = Kind::kOther;
  std::string key;  // kRecords: of the list
};

JsonOutline outline_json(std::string_view text);

// Behind a byte-order mark and blanks.
std::string_view json_start(std::string_view text);

}  // namespace trapline::inputs
