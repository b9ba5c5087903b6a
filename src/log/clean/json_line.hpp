// Logs whose lines are JSON objects: structured loggers, containers, cloud consoles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trapline {

// What a line of JSON says: its message, the texts of its exception, and who said it.
struct JsonLine {
  std::string text;  // with real line breaks
  std::int64_t rank = -1;
  std::int64_t pid = -1;
  std::string host;
  bool is_error = false;  // its level says so
  bool is_calm = false;   // its level says that it is none
};

// False when `line` is not a JSON object, or one without a message.
bool read_json_line(std::string_view line, JsonLine& out);

// Appends the text of a JSON string's inside (without its quotes), lenient: a broken escape stays as it is.
void unescape_json(std::string_view inside, std::string& out);

}  // namespace trapline
