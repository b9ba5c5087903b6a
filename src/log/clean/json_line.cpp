#include "log/clean/json_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

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

// A cursor over JSON: just enough to walk through its values.
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
  // A number or a word.
  bool plain(std::string_view& value) {
    space();
    const std::size_t start = next_;
    while (next_ < text_.size() && std::string_view(",]} \t").find(text_[next_]) == std::string_view::npos)
      ++next_;
    value = text_.substr(start, next_ - start);
    return !value.empty() && next_ < text_.size();
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
  return std::ranges::find(names, key) != names.end();
}

constexpr auto kMessages = std::to_array<std::string_view>(
    {"message",     "log",         "msg",     "MESSAGE", "text",   "line",   "event", "body",   "@message",
     "content",     "textPayload", "output",  "stdout",  "stderr", "data",   "logs",  "reason", "description",
     "stringValue", "payload", "short_message"});
constexpr auto kTraces = std::to_array<std::string_view>(
    {"exc_info", "exception", "exc_text", "traceback", "stack_trace", "stacktrace", "stack", "error", "err",
     "detail", "details", "stack_info", "py_callstack", "exc", "exc_value", "errorMessage", "error_message",
     "full_message", "errors", "cause", "tb", "log_tail", "error.stack_trace", "error.message",
     "exception.stacktrace", "exception.message"});
constexpr std::array<std::string_view, 4> kRanks{"rank", "global_rank", "RANK", "worker_rank"};
constexpr std::array<std::string_view, 7> kHosts{"host",     "hostname", "_HOSTNAME", "node",
                                                 "pod_name", "nodename", "pod"};
constexpr std::array<std::string_view, 5> kPids{"pid", "process_id", "_PID", "SYSLOG_PID", "process"};
// Strings that name something and say nothing, whatever words are in them.
constexpr auto kNames = std::to_array<std::string_view>(
    {"level", "levelname", "severity", "logger", "logger_name", "caller", "file", "filename", "pathname",
     "path", "module", "funcName", "function", "_CMDLINE", "cmdline", "command", "cmd", "args", "argv", "url",
     "uri", "user_agent", "prompt", "query", "source", "program"});

constexpr int kMaxDepth = 12;
constexpr std::size_t kMaxTexts = 4096;

void number(std::string_view text, std::int64_t& out) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) out = value;
}

// Whether a string under a key that nobody knows is something that was said: a sentence that speaks of a
// failure, or several lines.
bool is_said(std::string_view inside) {
  for (const std::string_view sign : {"ERROR_", "_STATUS_", "Error:"}) {
    if (inside.find(sign) != inside.npos) return true;
  }
  if (inside.find(' ') == inside.npos) return false;
  if (inside.find("\\n") != inside.npos) return true;
  for (const std::string_view sign :
       {"rror", "xception", "ssert", "ail", "raceback", "File ", "FATAL", "atal", "out of memory", "kill"}) {
    if (inside.find(sign) != inside.npos) return true;
  }
  return false;
}

// A key decides what the strings below it are, unless another key stands between them.
enum class Kind : std::uint8_t { kOther, kMessage, kTrace, kName };

Kind kind_of(std::string_view key) {
  if (one_of(key, kMessages)) return Kind::kMessage;
  if (one_of(key, kTraces)) return Kind::kTrace;
  return one_of(key, kNames) ? Kind::kName : Kind::kOther;
}

struct Text {
  std::string text;
  bool trace;  // goes behind the messages of its record
};

// Walks through one line of JSON and keeps what was said in it.
class Walk {
 public:
  Walk(std::string_view line, JsonLine& out) : at_(line), out_(out) {}

  bool all() {
    if (at_.peek() == '[' ? !array("", Kind::kOther, 0) : !object("", 0)) return false;
    if (!at_.at_end() || texts_.empty()) return false;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (is_repeated(i)) continue;
      if (!out_.text.empty()) out_.text += '\n';
      out_.text += texts_[i].text;
    }
    return true;
  }

 private:
  // The same words under several keys ("text" and "message" of loguru, an error's message and its trace) are
  // said once.
  bool is_repeated(std::size_t i) const {
    const std::string& text = texts_[i].text;
    if (text.empty()) return true;
    if (texts_.size() > 16) return false;  // a list of lines, not a record
    for (std::size_t k = 0; k < texts_.size(); ++k) {
      const std::string& other = texts_[k].text;
      if (k != i && (other.size() > text.size() || (other.size() == text.size() && k < i)) &&
          other.find(text) != other.npos)
        return true;
    }
    return false;
  }

  void keep(std::string_view inside, Kind kind) {
    if (kind == Kind::kName || texts_.size() >= kMaxTexts) return;
    if (kind == Kind::kOther && !is_said(inside)) return;
    Text text{{}, kind == Kind::kTrace};
    unescape_json(inside, text.text);
    while (!text.text.empty() && (text.text.back() == '\n' || text.text.back() == '\r')) text.text.pop_back();
    texts_.push_back(std::move(text));
  }

  // A frame that was written as a record; structlog and others write a list of them before the exception's
  // words or behind.
  void keep_frame(std::string_view file, std::string_view line, std::string_view function) {
    Text text{"  File \"", true};
    unescape_json(file, text.text);
    text.text += "\", line " + std::string(line) + ", in ";
    unescape_json(function, text.text);
    texts_.push_back(std::move(text));
  }

  bool value(std::string_view key, Kind kind, int depth) {
    if (depth > kMaxDepth) return false;
    const char first = at_.peek();
    if (first == '{') return object(key, depth + 1);
    if (first == '[') return array(key, kind, depth + 1);
    std::string_view text;
    const bool is_string = first == '"';
    if (is_string ? !at_.string(text) : !at_.plain(text)) return false;
    if (one_of(key, kRanks)) {
      number(text, out_.rank);
    } else if (one_of(key, kPids)) {
      number(text, out_.pid);
    } else if (is_string && one_of(key, kHosts)) {
      if (out_.host.empty()) unescape_json(text, out_.host);
    } else if (is_string) {
      keep(text, kind);
    }
    return true;
  }

  // `list`: the key of the list that it is in.
  bool object(std::string_view list, int depth) {
    if (!at_.take('{')) return false;
    if (at_.take('}')) return true;
    const std::size_t first = texts_.size();
    std::string_view file, line, function, type, words;
    do {
      std::string_view key;
      if (!at_.string(key) || !at_.take(':')) return false;
      const char kind = at_.peek();
      Cursor ahead = at_;
      if (kind == '"' && (key == "filename" || key == "abs_path"))
        ahead.string(file);
      else if (kind != '"' && (key == "lineno" || key == "line_number"))
        ahead.plain(line);
      else if (kind == '"' && (key == "name" || key == "function"))
        ahead.string(function);
      else if (kind == '"' && (key == "exc_type" || key == "type" || key == "ename"))
        ahead.string(type);
      else if (kind == '"' && (key == "exc_value" || key == "evalue"))
        ahead.string(words);
      if (key == "exc_value" || key == "evalue") {  // told with its type, below
        at_ = ahead;
        if (words.data() != nullptr) continue;
      }
      if (!value(key, kind_of(key), depth)) return false;
    } while (at_.take(','));
    if (!at_.take('}')) return false;
    std::stable_partition(texts_.begin() + static_cast<std::ptrdiff_t>(first), texts_.end(),
                          [](const Text& text) { return !text.trace; });
    if (list == "frames" && !file.empty() && !line.empty() && !function.empty())
      keep_frame(file, line, function);
    if (!words.empty()) {
      const std::string whole = type.empty() ? std::string(words) : std::string(type) + ": " + std::string(words);
      keep(whole, Kind::kTrace);
    }
    return true;
  }

  // A list of lines, of records, or a text as the numbers of its bytes (the journal writes so what is not
  // plain text).
  bool array(std::string_view key, Kind kind, int depth) {
    if (!at_.take('[')) return false;
    if (at_.take(']')) return true;
    std::string bytes;
    bool only_bytes = kind == Kind::kMessage || kind == Kind::kTrace;
    do {
      const char first = at_.peek();
      if (first == '{' || first == '[' || first == '"') {
        only_bytes = false;
        if (!value(key, kind, depth)) return false;
        continue;
      }
      std::string_view text;
      if (!at_.plain(text)) return false;
      std::int64_t byte = -1;
      number(text, byte);
      if (only_bytes && byte >= 0 && byte < 256)
        bytes += static_cast<char>(byte);
      else
        only_bytes = false;
    } while (at_.take(','));
    if (only_bytes && bytes.find(' ') != bytes.npos) {
      texts_.push_back({std::move(bytes), kind == Kind::kTrace});
    }
    return at_.take(']');
  }

  Cursor at_;
  JsonLine& out_;
  std::vector<Text> texts_;
};

}  // namespace

bool read_json_line(std::string_view line, JsonLine& out) {
  out.text.clear();
  out.host.clear();
  out.rank = out.pid = -1;
  if (line.empty() || (line.front() != '{' && line.front() != '[')) return false;
  return Walk(line, out).all();
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
