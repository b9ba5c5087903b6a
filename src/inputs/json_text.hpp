// JSON through simdjson's on-demand parser: values are decoded only when asked for, and deep nesting costs no
// stack. Texts are copied because the parser reads a few bytes behind their end.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "inputs/damage.hpp"

namespace trapline::inputs {

namespace ondemand = simdjson::ondemand;

inline constexpr int kMaxJsonDepth = 64;

class JsonText {
 public:
  // Ready for parser.iterate(); valid until the next call.
  simdjson::padded_string_view of(std::string_view text);
  // Where the document stands, from the text's first byte.
  std::size_t offset(ondemand::document& document) const {
    const char* at = nullptr;
    if (document.current_location().get(at) != simdjson::SUCCESS || at < copy_.get()) return size_;
    return std::min(static_cast<std::size_t>(at - copy_.get()), size_);
  }

 private:
  std::unique_ptr<char[]> copy_;
  std::size_t capacity_ = 0, size_ = 0;
};

// Nothing but blanks is left behind the document's value.
inline bool at_end(ondemand::document& document) {
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

inline std::string json_problem(simdjson::error_code code) {
  return std::string("no valid JSON: ") + simdjson::error_message(code);
}

}  // namespace trapline::inputs
