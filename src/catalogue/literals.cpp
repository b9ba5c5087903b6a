#include "catalogue/literals.hpp"

#include <utility>

namespace trapline {
namespace {

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Behind the class that begins at `at`.
std::size_t end_of_class(std::string_view text, std::size_t at) {
  ++at;
  if (at < text.size() && text[at] == '^') ++at;
  if (at < text.size() && text[at] == ']') ++at;
  while (at < text.size() && text[at] != ']') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

// Behind the group that begins at `at`.
std::size_t end_of_group(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    if (text[at] == '\\') {
      at += 2;
      continue;
    }
    if (text[at] == '[') {
      at = end_of_class(text, at);
      continue;
    }
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    ++at;
    if (depth == 0) break;
  }
  return at;
}

std::vector<std::string_view> alternatives(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    if (text[at] == '\\') {
      at += 2;
    } else if (text[at] == '[') {
      at = end_of_class(text, at);
    } else if (text[at] == '(') {
      at = end_of_group(text, at);
    } else {
      if (text[at] == '|') {
        out.push_back(text.substr(begin, at - begin));
        begin = at + 1;
      }
      ++at;
    }
  }
  out.push_back(text.substr(begin <= text.size() ? begin : text.size()));
  return out;
}

// The longest run of characters that one alternative cannot do without.
class Longest {
 public:
  explicit Longest(std::string_view text) : text_(text) {}

  std::string find() {
    while (at_ < text_.size()) step(text_[at_]);
    ends();
    return best_;
  }

 private:
  void ends() {
    if (run_.size() > best_.size()) best_ = run_;
    run_.clear();
  }

  void step(char c) {
    if (c == '\\') return escape();
    if (c == '[') {
      at_ = end_of_class(text_, at_);
      return breaks();
    }
    if (c == '(') return group();
    if (c == '?' || c == '*' || c == '+' || (c == '{' && counts())) return repeats(c);
    ++at_;
    if (c == '.' || static_cast<unsigned char>(c) >= 0x80) return breaks();
    if (c == '^' || c == '$') return static_cast<void>(single_ = false);
    takes(c);
  }

  void takes(char c) {
    run_ += small(c);
    single_ = true;
  }

  void breaks() {
    ends();
    single_ = false;
  }

  void escape() {
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\\';
    at_ += 2;
    if (c == 'b' || c == 'B') return static_cast<void>(single_ = false);  // as wide as nothing
    if (!is_alnum(c)) return takes(c);
    if ((c == 'p' || c == 'P') && at_ < text_.size())
      at_ = text_[at_] == '{' ? text_.find('}', at_) + 1 : at_ + 1;
    if (c == 'x' && at_ < text_.size()) at_ = text_[at_] == '{' ? text_.find('}', at_) + 1 : at_ + 2;
    breaks();
  }

  // "(?i)" sets flags from there on; another group counts where it must be there and has one alternative.
  void group() {
    const std::size_t end = end_of_group(text_, at_);
    std::string_view inner = text_.substr(at_ + 1, end - at_ - 2);
    at_ = end;
    if (inner.starts_with('?')) {
      const std::size_t mark = inner.find_first_not_of("?imsU-");
      if (mark == std::string_view::npos) return static_cast<void>(single_ = false);
      if (inner[mark] != ':') return breaks();  // a name: none here has one
      inner.remove_prefix(mark + 1);
    }
    ends();
    single_ = false;
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    if (next == '?' || next == '*' || next == '{') return;
    const std::vector<std::string_view> inside = alternatives(inner);
    if (inside.size() != 1) return;
    std::string found = Longest(inside.front()).find();
    if (found.size() > best_.size()) best_ = std::move(found);
  }

  // "{2}", "{0,40}"; any other brace stands for itself.
  bool counts() const {
    const std::size_t end = text_.find_first_not_of("0123456789,", at_ + 1);
    return end != std::string_view::npos && text_[end] == '}' && end > at_ + 1;
  }

  void repeats(char c) {
    const bool may_be_none = c != '+';  // also {2}: once is enough to be sure of nothing behind it
    if (may_be_none && single_ && !run_.empty()) run_.pop_back();
    at_ = c == '{' ? text_.find('}', at_) + 1 : at_ + 1;
    if (at_ < text_.size() && text_[at_] == '?') ++at_;
    breaks();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string run_, best_;
  bool single_ = false;  // the last thing was a character, which a `?` behind it takes back
};

}  // namespace

std::vector<std::string> needed_literals(std::string_view pattern, std::size_t least) {
  std::vector<std::string> out;
  for (const std::string_view one : alternatives(pattern)) {
    out.push_back(Longest(one).find());
    if (out.back().size() < least) return {};
  }
  return out;
}

}  // namespace trapline
