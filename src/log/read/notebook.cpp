#include "log/read/notebook.hpp"

#include <algorithm>

#include "log/clean/json_line.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMaxString = std::size_t{1} << 20U;  // bytes of one output
constexpr std::size_t kMaxDepth = 64;

bool is_told(std::string_view key) { return key == "text" || key == "traceback" || key == "text/plain"; }

}  // namespace

bool is_notebook(std::string_view name, std::string_view head) {
  for (const std::string_view end : {".gz", ".zst", ".bz2", ".xz"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == head.npos || head[first] != '{') return false;
  return name.ends_with(".ipynb") || head.find("\"cell_type\"") != head.npos;
}

void NotebookReader::feed(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n') ++number_;
    if (in_string_) {
      if (!is_escaped_ && c == '"') {
        string_ends();
        continue;
      }
      is_escaped_ = !is_escaped_ && c == '\\';
      if (is_kept_ && inside_.size() < kMaxString) inside_ += c;
      continue;
    }
    switch (c) {
      case '"':
        string_begins();
        break;
      case '{':
      case '[': {
        const bool outputs = key_ == "outputs" || (!open_.empty() && open_.back().outputs);
        if (open_.size() < kMaxDepth) open_.push_back({c == '{', key_, outputs});
        key_follows_ = c == '{';
        break;
      }
      case '}':
      case ']':
        closes();
        break;
      case ',':
        key_follows_ = !open_.empty() && open_.back().object;
        key_ = open_.empty() || key_follows_ ? std::string() : open_.back().key;
        break;
      default:
        break;
    }
  }
}

void NotebookReader::string_begins() {
  in_string_ = true;
  is_escaped_ = false;
  string_number_ = number_;
  inside_.clear();
  const bool in_outputs = !open_.empty() && open_.back().outputs;
  is_kept_ = key_follows_ || (in_outputs && (is_told(key_) || key_ == "ename" || key_ == "evalue"));
}

void NotebookReader::string_ends() {
  in_string_ = false;
  if (key_follows_) {
    key_ = inside_;
    key_follows_ = false;
    return;
  }
  if (!is_kept_) return;
  if (key_ == "ename") {
    name_ = inside_;
  } else if (key_ == "evalue") {
    value_ = inside_;
  } else {
    has_traceback_ = has_traceback_ || key_ == "traceback";
    tell(inside_, string_number_);
  }
}

void NotebookReader::closes() {
  if (open_.empty()) return;
  open_.pop_back();
  const bool is_output = !open_.empty() && !open_.back().object && open_.back().key == "outputs";
  if (!is_output) return;
  if (!has_traceback_) tell_exception();
  name_.clear();
  value_.clear();
  has_traceback_ = false;
}

void NotebookReader::tell_exception() {
  if (!name_.empty()) tell(name_ + ": " + value_, string_number_);
}

void NotebookReader::finish() {
  if (in_string_ && is_kept_ && !key_follows_ && is_told(key_)) tell(inside_, string_number_);
  if (unfinished()) tell_exception();
}

void NotebookReader::tell(std::string_view inside, std::int64_t number) {
  std::string text;
  unescape_json(inside, text);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t feed = std::min(rest.find('\n'), rest.size());
    sink_.raw_line(rest.substr(0, feed), number, false);
    rest.remove_prefix(std::min(feed + 1, rest.size()));
  }
}

}  // namespace trapline
