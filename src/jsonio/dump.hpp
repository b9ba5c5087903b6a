// JSON as text that is safe to look at: on a terminal, in an editor, in a web page's log.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trapline::jsonio {

// Characters that can drive a terminal or reorder what a reader sees: controls (C0, DEL, C1), line and
// paragraph separators, marks and overrides of direction, the byte order mark.
constexpr bool is_unsafe(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || (c >= 0x200E && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

// The value as valid JSON with every such character written out (\u009b); bytes that are not UTF-8 become
// U+FFFD. `indent` as nlohmann has it: -1 is one line. Reading it gives the same value back.
std::string dump(const nlohmann::json& value, int indent = -1);

}  // namespace trapline::jsonio
