#include "log/clean/json_line.hpp"

#include <algorithm>
#include <charconv>
#include <deque>
#include <initializer_list>
#include <unordered_map>
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

// A key decides what the strings below it are, unless another key stands between them.
enum class Kind : std::uint8_t {
  kOther,
  kMessage,
  kTrace,
  kName,  // strings that name something and say nothing, whatever words are in them
  kRank,
  kHost,
  kPid,
  kFile,  // of a frame that was written as a record, its line and its function
  kLine,
  kFunction,
  kType,  // of an exception, and its words
  kWords,
};

Kind kind_of(std::string_view key) {
  static const auto* const kinds = [] {
    auto* const all = new std::unordered_map<std::string_view, Kind>;
    const auto add = [&](Kind kind, std::initializer_list<std::string_view> keys) {
      for (const std::string_view one : keys) all->emplace(one, kind);
    };
    add(Kind::kMessage,
        {"message", "log",      "msg",     "MESSAGE",     "text",        "line",    "event",
         "body",    "@message", "content", "textPayload", "output",      "stdout",  "stderr",
         "data",    "logs",     "reason",  "description", "stringValue", "payload", "short_message"});
    add(Kind::kTrace, {"exc_info",
                       "exception",
                       "exc_text",
                       "traceback",
                       "stack_trace",
                       "stacktrace",
                       "stack",
                       "error",
                       "err",
                       "detail",
                       "details",
                       "stack_info",
                       "py_callstack",
                       "exc",
                       "errorMessage",
                       "error_message",
                       "full_message",
                       "errors",
                       "cause",
                       "tb",
                       "log_tail",
                       "error.stack_trace",
                       "error.message",
                       "exception.stacktrace",
                       "exception.message"});
    add(Kind::kName,
        {"level",      "levelname",      "severity", "logger",   "logger_name", "caller",      "file",
         "pathname",   "path",           "module",   "funcName", "_CMDLINE",    "cmdline",     "command",
         "cmd",        "args",           "argv",     "url",      "uri",         "user_agent",  "source",
         "program",    "prompt",         "query",    "question", "answer",      "instruction", "response",
         "completion", "generated_text", "title",    "comment"});
    add(Kind::kRank, {"rank", "global_rank", "RANK", "worker_rank"});
    add(Kind::kHost, {"host", "hostname", "_HOSTNAME", "node", "pod_name", "nodename", "pod"});
    add(Kind::kPid, {"pid", "process_id", "_PID", "SYSLOG_PID", "process"});
    add(Kind::kFile, {"filename", "abs_path"});
    add(Kind::kLine, {"lineno", "line_number"});
    add(Kind::kFunction, {"name", "function"});
    add(Kind::kType, {"exc_type", "type", "ename"});
    add(Kind::kWords, {"exc_value", "evalue"});
    return all;
  }();
  const auto found = kinds->find(key);
  return found == kinds->end() ? Kind::kOther : found->second;
}

constexpr int kMaxDepth = 12;
constexpr std::size_t kMaxTexts = 4096;
constexpr std::size_t kLeastBytes = 8;  // fewer numbers are no text

void number(std::string_view text, std::int64_t& out) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) out = value;
}

// Whether a string under a key that nobody knows is something that was said: words, or the name of an error.
bool is_said(std::string_view inside) {
  constexpr std::size_t kLeastName = 12;  // "ERROR" alone is a level
  if (inside.find(' ') != inside.npos) return true;
  if (inside.size() < kLeastName) return false;
  for (const std::string_view sign : {"rror", "RROR", "_STATUS_", "xception", "ailed", "ssert"}) {
    if (inside.find(sign) != inside.npos) return true;
  }
  return false;
}

bool is_level(std::string_view key) {
  return key == "level" || key == "levelname" || key == "severity" || key == "log_level" || key == "lvl" ||
         key == "log.level";
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> levels) {
  return std::ranges::any_of(levels, [&](std::string_view level) {
    return std::ranges::equal(text, level, {}, [](char c) { return c >= 'A' && c <= 'Z' ? c | 32 : c; });
  });
}

struct Text {
  std::string_view inside;  // of a string, still escaped
  bool trace;               // goes behind the messages of its record
};

// Walks through one line of JSON and keeps what was said in it.
class Walk {
 public:
  Walk(std::string_view line, JsonLine& out) : at_(line), out_(out) {}

  bool all() {
    if (at_.peek() == '[' ? !array(Kind::kOther, "", 0) : !object("", 0)) return false;
    if (!at_.at_end() || texts_.empty()) return false;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (is_repeated(i)) continue;
      if (!out_.text.empty()) out_.text += '\n';
      unescape_json(texts_[i].inside, out_.text);
      while (!out_.text.empty() && (out_.text.back() == '\n' || out_.text.back() == '\r'))
        out_.text.pop_back();
    }
    return true;
  }

 private:
  // The same words under several keys ("text" and "message" of loguru, an error's message and its trace) are
  // said once.
  bool is_repeated(std::size_t i) const {
    const std::string_view text = texts_[i].inside;
    if (text.empty()) return true;
    if (texts_.size() > 16) return false;  // a list of lines, not a record
    for (std::size_t k = 0; k < texts_.size(); ++k) {
      const std::string_view other = texts_[k].inside;
      if (k != i && (other.size() > text.size() || (other.size() == text.size() && k < i)) &&
          other.find(text) != other.npos)
        return true;
    }
    return false;
  }

  void keep(std::string_view inside, Kind kind) {
    if (texts_.size() >= kMaxTexts) return;
    const bool said =
        kind == Kind::kMessage || kind == Kind::kTrace || (kind == Kind::kOther && is_said(inside));
    if (said) texts_.push_back({inside, kind == Kind::kTrace});
  }

  void keep_made(std::string text, bool trace) {
    made_.push_back(std::move(text));
    texts_.push_back({made_.back(), trace});
  }

  bool value(Kind kind, std::string_view key, int depth, std::string_view& text) {
    if (depth > kMaxDepth) return false;
    const char first = at_.peek();
    if (first == '{') return object(key, depth + 1);
    if (first == '[') return array(kind, key, depth + 1);
    const bool is_string = first == '"';
    if (is_string ? !at_.string(text) : !at_.plain(text)) return false;
    if (kind == Kind::kRank)
      number(text, out_.rank);
    else if (kind == Kind::kPid)
      number(text, out_.pid);
    else if (is_string && kind == Kind::kHost && out_.host.empty())
      unescape_json(text, out_.host);
    else if (is_string)
      keep(text, kind);
    return true;
  }

  // `list`: the key of the list that it is in.
  bool object(std::string_view list, int depth) {
    if (!at_.take('{')) return false;
    if (at_.take('}')) return true;
    const std::size_t first = texts_.size();
    std::string_view file, line, function, type, words;
    do {
      std::string_view key, text;
      if (!at_.string(key) || !at_.take(':')) return false;
      const Kind kind = kind_of(key);
      if (!value(kind, key, depth, text)) return false;
      if (is_level(key)) {
        out_.is_error = out_.is_error ||
                        is_one_of(text, {"error", "err", "critical", "fatal", "panic", "alert", "emergency"});
        out_.is_calm =
            out_.is_calm || is_one_of(text, {"trace", "debug", "info", "notice", "warn", "warning"});
      }
      if (kind == Kind::kFile) file = text;
      if (kind == Kind::kLine) line = text;
      if (kind == Kind::kFunction) function = text;
      if (kind == Kind::kType) type = text;
      if (kind == Kind::kWords) words = text;
    } while (at_.take(','));
    if (!at_.take('}')) return false;
    std::stable_partition(texts_.begin() + static_cast<std::ptrdiff_t>(first), texts_.end(),
                          [](const Text& text) { return !text.trace; });
    const auto said = [](std::string_view text) { return std::string(text); };
    if (list == "frames" && !file.empty() && !line.empty() && !function.empty())
      keep_made("  File \\\"" + said(file) + "\\\", line " + said(line) + ", in " + said(function), true);
    if (!words.empty()) keep_made(type.empty() ? said(words) : said(type) + ": " + said(words), true);
    return true;
  }

  // A list of lines, of records, or a text as the numbers of its bytes (the journal writes so what is not
  // plain text).
  bool array(Kind kind, std::string_view key, int depth) {
    if (!at_.take('[')) return false;
    if (at_.take(']')) return true;
    std::string bytes;
    bool only_bytes = kind == Kind::kMessage || kind == Kind::kTrace;
    do {
      const char first = at_.peek();
      std::string_view text;
      if (first == '{' || first == '[' || first == '"') {
        only_bytes = false;
        if (!value(kind, key, depth, text)) return false;
        continue;
      }
      if (!at_.plain(text)) return false;
      std::int64_t byte = -1;
      number(text, byte);
      only_bytes = only_bytes && byte >= '\t' && byte < 256;
      if (!only_bytes) continue;
      if (byte == '\\') bytes += '\\';
      bytes += static_cast<char>(byte);
    } while (at_.take(','));
    if (only_bytes && bytes.size() >= kLeastBytes) keep_made(std::move(bytes), kind == Kind::kTrace);
    return at_.take(']');
  }

  Cursor at_;
  JsonLine& out_;
  std::vector<Text> texts_;
  std::deque<std::string> made_;  // what no string of the line says as it stands
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
            // What ends it, as text.cpp has it; anything else is text.
            const bool ended = end < inside.size() && inside[end] >= 0x40 && inside[end] <= 0x7e;
            i = ended ? end : end - 1;
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
