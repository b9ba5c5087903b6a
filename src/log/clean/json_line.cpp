#include "log/clean/json_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "log/clean/text.hpp"

namespace trapline {
namespace {

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The four digits behind "\u" at `i`; -1 when they are none.
std::int32_t code_unit(std::string_view text, std::size_t i) {
  if (text.size() < i + 6 || text[i] != '\\' || text[i + 1] != 'u') return -1;
  std::int32_t unit = 0;
  for (std::size_t k = 2; k < 6; ++k) {
    const int digit = hex(text[i + k]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

// A cursor over a JSON object: just enough to find the strings and numbers of its first two levels.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}
  void space() {
    while (next_ < text_.size() && (text_[next_] == ' ' || text_[next_] == '\t')) ++next_;
  }
  bool take(char c) {
    space();
    if (next_ >= text_.size() || text_[next_] != c) return false;
    ++next_;
    return true;
  }
  char peek() {
    space();
    return next_ < text_.size() ? text_[next_] : '\0';
  }
  // The inside of a string, still escaped.
  bool string(std::string_view& inside) {
    if (!take('"')) return false;
    const std::size_t start = next_;
    for (; next_ < text_.size(); ++next_) {
      if (text_[next_] == '\\') {
        ++next_;
      } else if (text_[next_] == '"') {
        inside = text_.substr(start, next_ - start);
        ++next_;
        return true;
      }
    }
    return false;
  }
  // Anything that is no string and no object: up to the next comma or closing brace of this level.
  bool skip(std::string_view& value) {
    space();
    const std::size_t start = next_;
    int depth = 0;
    while (next_ < text_.size()) {
      const char c = text_[next_];
      if (c == '"') {
        std::string_view ignored;
        if (!string(ignored)) return false;
        continue;
      }
      if (c == '[' || c == '{') ++depth;
      if (depth == 0 && (c == ',' || c == '}')) break;
      if (c == ']' || c == '}') --depth;
      ++next_;
    }
    value = text_.substr(start, next_ - start);
    return next_ < text_.size();
  }
  bool at_end() {
    space();
    return next_ >= text_.size();
  }

 private:
  std::string_view text_;
  std::size_t next_ = 0;
};

template <std::size_t N>
bool one_of(std::string_view key, const std::array<std::string_view, N>& names) {
  for (const std::string_view name : names) {
    if (key == name) return true;
  }
  return false;
}

constexpr std::array<std::string_view, 11> kMessages{"message",  "log",     "msg",        "MESSAGE",
                                                     "text",     "line",    "event",      "body",
                                                     "@message", "content", "textPayload"};
constexpr std::array<std::string_view, 10> kTraces{"exc_info",    "exception",  "exc_text", "traceback",
                                                   "stack_trace", "stacktrace", "stack",    "error",
                                                   "err",         "detail"};
constexpr std::array<std::string_view, 4> kRanks{"rank", "global_rank", "RANK", "worker_rank"};
constexpr std::array<std::string_view, 7> kHosts{"host",     "hostname", "_HOSTNAME", "node",
                                                 "pod_name", "nodename", "pod"};
constexpr std::array<std::string_view, 5> kPids{"pid", "process_id", "_PID", "SYSLOG_PID", "process"};

void number(std::string_view text, std::int64_t& out) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) out = value;
}

struct Found {
  std::string_view message;
  bool has_message = false;
  std::string traces;
};

bool read_object(Cursor& cursor, int depth, Found& found, JsonLine& out) {
  if (!cursor.take('{')) return false;
  if (cursor.take('}')) return true;
  do {
    std::string_view key;
    std::string_view value;
    if (!cursor.string(key) || !cursor.take(':')) return false;
    const bool is_string = cursor.peek() == '"';
    if (is_string) {
      if (!cursor.string(value)) return false;
    } else if (cursor.peek() == '{' && depth < 3) {
      if (!read_object(cursor, depth + 1, found, out)) return false;
      continue;
    } else if (!cursor.skip(value)) {
      return false;
    }
    if (is_string && one_of(key, kMessages) && !found.has_message) {
      found.message = value;
      found.has_message = true;
    } else if (is_string && one_of(key, kTraces) && !value.empty()) {
      found.traces += '\n';
      unescape_json(value, found.traces);
    } else if (one_of(key, kRanks)) {
      number(value, out.rank);
    } else if (one_of(key, kPids)) {
      number(value, out.pid);
    } else if (is_string && one_of(key, kHosts) && out.host.empty()) {
      unescape_json(value, out.host);
    }
  } while (cursor.take(','));
  return cursor.take('}');
}

}  // namespace

bool read_json_line(std::string_view line, JsonLine& out) {
  out.text.clear();
  out.host.clear();
  out.rank = out.pid = -1;
  Cursor cursor(line);
  if (cursor.peek() != '{') return false;
  Found found;
  if (!read_object(cursor, 0, found, out) || !cursor.at_end()) return false;
  if (!found.has_message && found.traces.empty()) return false;
  unescape_json(found.message, out.text);
  while (!out.text.empty() && (out.text.back() == '\n' || out.text.back() == '\r')) out.text.pop_back();
  if (out.text.empty() && !found.traces.empty()) found.traces.erase(0, 1);
  out.text += found.traces;
  return true;
}

void unescape_json(std::string_view inside, std::string& out) {
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\' || i + 1 == inside.size()) {
      out.push_back(inside[i]);
      continue;
    }
    const char kind = inside[++i];
    switch (kind) {
      case 'n':
        out.push_back('\n');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'r':  // "\r\n" is one line break
        if (!inside.substr(i + 1).starts_with("\\n")) out.push_back('\n');
        break;
      case 'b':
      case 'f':
        out.push_back(' ');
        break;
      case '"':
      case '\'':
      case '/':
      case '\\':
        out.push_back(kind);
        break;
      case 'u': {
        const std::int32_t unit = code_unit(inside, i - 1);
        if (unit < 0) {
          out += "\\u";
          break;
        }
        i += 4;
        const std::int32_t low = unit >= 0xd800 && unit < 0xdc00 ? code_unit(inside, i + 1) : -1;
        if (low >= 0xdc00 && low < 0xe000) {
          append_utf8(out, 0x10000U + (static_cast<std::uint32_t>(unit - 0xd800) << 10U) +
                               static_cast<std::uint32_t>(low - 0xdc00));
          i += 6;
        } else if (unit == 0x1b) {  // a colour inside a JSON string: the sequence that follows goes too
          if (i + 1 < inside.size() && inside[i + 1] == '[') {
            std::size_t end = i + 2;
            while (end < inside.size() && inside[end] >= 0x20 && inside[end] <= 0x3f) ++end;
            i = end < inside.size() ? end : inside.size() - 1;
          }
        } else if (unit >= 0x20) {
          append_utf8(out, static_cast<std::uint32_t>(unit));
        }
        break;
      }
      default:
        out.push_back('\\');
        out.push_back(kind);
    }
  }
}

}  // namespace trapline
