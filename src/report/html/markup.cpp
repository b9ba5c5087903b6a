#include "report/html/markup.hpp"

#include <algorithm>
#include <array>

#include "report/utf8.hpp"

namespace trapline::html {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Those that have no end tag, of the few that are used.
bool is_void(std::string_view name) {
  constexpr std::array<std::string_view, 2> kVoid = {"meta", "br"};
  return std::ranges::find(kVoid, name) != kVoid.end();
}

}  // namespace

Html text(std::string_view text) {
  Html out;
  out.code_ = escaped(text);
  return out;
}

Html literal(std::string_view code) {
  Html out;
  out.code_ = code;
  return out;
}

Html tag(std::string_view name, Attributes attributes, const Html& content) {
  Html out;
  out.code_.append("<").append(name);
  for (const auto& [key, value] : attributes) {
    if (value.empty()) continue;
    out.code_.append(" ").append(key).append("=\"").append(escaped(value)).append("\"");
  }
  out.code_ += '>';
  if (!is_void(name)) out.code_.append(content.code_).append("</").append(name).append(">");
  return out;
}

}  // namespace trapline::html
