// HTML that is made of pieces: text gets in only through text(), which escapes it, so that nothing a program
// wrote can become markup.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace trapline::html {

// A piece of well-formed HTML.
class Html {
 public:
  Html() = default;

  Html& operator+=(const Html& other) {
    code_ += other.code_;
    return *this;
  }
  friend Html operator+(Html left, const Html& right) { return std::move(left += right); }
  bool empty() const { return code_.empty(); }
  const std::string& code() const { return code_; }

 private:
  friend Html text(std::string_view);
  friend Html literal(std::string_view);
  friend Html tag(std::string_view, std::initializer_list<std::pair<std::string_view, std::string>>,
                  const Html&);

  std::string code_;
};

using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

// A program's text: valid UTF-8, control characters and overrides of the direction written out, markup
// escaped.
Html text(std::string_view text);

// Our own words, as they are: only for what stands in a source file of this room.
Html literal(std::string_view code);

// <name key="value">content</name>; values are escaped, names are our own. An attribute without a value
// is left out.
Html tag(std::string_view name, Attributes attributes, const Html& content = {});

inline Html tag(std::string_view name, const Html& content) { return tag(name, {}, content); }

}  // namespace trapline::html
