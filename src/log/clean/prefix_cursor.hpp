// Small steps over a line from the left, for the prefixes. Each says whether it fitted; a step that did not
// fit moves nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace trapline::prefix {

inline bool digit(char c) { return c >= '0' && c <= '9'; }
inline bool lower(char c) { return c >= 'a' && c <= 'z'; }
inline bool upper(char c) { return c >= 'A' && c <= 'Z'; }
inline bool word(char c) { return digit(c) || lower(c) || upper(c) || c == '_'; }
inline bool name(char c) { return word(c) || c == '-' || c == '.' || c == '/'; }

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}
  std::string_view rest() const { return text_.substr(next_); }
  char peek(std::size_t ahead = 0) const {
    return next_ + ahead < text_.size() ? text_[next_ + ahead] : '\0';
  }
  bool at_end() const { return next_ == text_.size(); }
  // Whether one of the levels that were taken is an error's.
  bool is_error = false;
  bool is_calm = false;

  bool take(char c) {
    if (peek() != c) return false;
    ++next_;
    return true;
  }
  bool take(std::string_view literal) {
    if (!rest().starts_with(literal)) return false;
    next_ += literal.size();
    return true;
  }
  // In either case.
  bool take_word(std::string_view lower_case) {
    for (std::size_t k = 0; k < lower_case.size(); ++k) {
      const char c = peek(k);
      if ((upper(c) ? static_cast<char>(c + 32) : c) != lower_case[k]) return false;
    }
    next_ += lower_case.size();
    return true;
  }
  std::size_t spaces() {
    const std::size_t start = next_;
    while (peek() == ' ' || peek() == '\t') ++next_;
    return next_ - start;
  }
  // Between `least` and `most` digits, and no more behind them.
  bool number(std::int64_t& value, std::size_t least = 1, std::size_t most = 18) {
    std::size_t count = 0;
    std::int64_t sum = 0;
    while (digit(peek(count)) && count <= most) sum = sum * 10 + (peek(count++) - '0');
    if (count < least || count > most) return false;
    next_ += count;
    value = sum;
    return true;
  }
  bool digits(std::size_t least, std::size_t most) {
    std::int64_t ignored = 0;
    return number(ignored, least, most);
  }
  template <class Is>
  std::string_view run(Is&& is, std::size_t most = 128) {
    const std::size_t start = next_;
    while (next_ < text_.size() && next_ - start < most && is(text_[next_])) ++next_;
    return text_.substr(start, next_ - start);
  }

 private:
  std::string_view text_;
  std::size_t next_ = 0;
};

}  // namespace trapline::prefix
