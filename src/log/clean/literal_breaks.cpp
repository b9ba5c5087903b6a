#include "log/clean/literal_breaks.hpp"

#include <algorithm>

#include "log/clean/json_line.hpp"

namespace trapline {

void split_literal_newlines(std::string_view line, std::string& scratch,
                            std::vector<std::string_view>& parts) {
  parts.clear();
  const auto is_break =
      [&](std::size_t i) {  // "\n" at i that is a line break and no part of a path or of source code
        const char after = i + 2 < line.size() ? line[i + 2] : '\0';
        const char before = i > 0 ? line[i - 1] : '\0';
        if (before == '\\') return false;
        if (after == '"' || after == '\'') return false;
        const bool lower = after >= 'a' && after <= 'z';
        if (!lower) return after != '_';
        for (const std::string_view start : {"terminate called", "frame #", "torch.", "python", "jaxlib."}) {
          if (line.substr(i + 2).starts_with(start)) return true;
        }
        // Else in lower case only behind the end of a sentence or a quotation. A drive letter's colon is no
        // such end.
        return before == '.' || before == '`' || before == ')' || before == ',' || before == ';' ||
               before == '>';
      };
  std::size_t breaks = 0;
  bool frames = false;
  bool escaped = false;
  std::size_t first = line.find('\\');
  if (first == line.npos) {
    parts.push_back(line);
    return;
  }
  for (std::size_t i = first; i + 1 < line.size(); ++i) {
    if (line[i] != '\\') continue;
    if (line[i + 1] == 'n' && is_break(i)) {
      ++breaks;
      const std::size_t text = line.find_first_not_of(' ', i + 2);
      if (text != line.npos) {
        const std::string_view rest = line.substr(text);
        frames = frames || rest.starts_with("File ") || rest.starts_with("Traceback");
        escaped = escaped || rest.starts_with("File \\\"");
      }
    }
    if (line[i + 1] == '\\') ++i;
  }
  // One "\n" alone is as likely a piece of source code, unless a traceback stands around it.
  if (breaks == 0 || (breaks == 1 && !frames && line.find("Assertion") == line.npos)) {
    parts.push_back(line);
    return;
  }
  scratch.clear();
  if (escaped) {  // the inside of a JSON string: all escapes mean something
    unescape_json(line, scratch);
  } else {
    scratch.reserve(line.size());
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == 'n' && is_break(i)) {
        scratch.push_back('\n');
        ++i;
      } else {
        scratch.push_back(line[i]);
      }
    }
  }
  const std::string_view text = scratch;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
}

}  // namespace trapline
