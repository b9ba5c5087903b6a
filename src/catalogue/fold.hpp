// Text reduced to what survives copying: the form in which the catalogue's wordings are matched.
//
// Kept are letters and digits, in lower case. Blanks, punctuation, operators, quotes and line breaks go, so a
// sentence that was wrapped in mid word, lost its back-quotes or gained Markdown stars still reads the same.
// Letters that OCR and fonts confuse become one: 0 is o; 1 and i are l; m is rn.
//
// This makes a key, it does not clean: the text is a clean line (log/line.hpp), without entities or
// full-width letters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trapline {

class TextFolder {
 public:
  // Calls emit(char) for each character that is left of `text`.
  template <class Emit>
  static void feed(std::string_view text, Emit&& emit) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte == '\\' && i + 1 < text.size() && is_escape(text[i + 1])) {
        ++i;  // a literal \n, \t, \r that was left in the line: white space
      } else if (byte < 0x80) {
        put(kFolded[byte], emit);
      }
    }
  }

 private:
  static const unsigned char kFolded[128];

  static bool is_escape(char c) { return c == 'n' || c == 't' || c == 'r'; }

  template <class Emit>
  static void put(unsigned char c, Emit& emit) {
    if (c == 0) return;
    if (c == 'm') {
      emit('r');
      c = 'n';
    }
    emit(static_cast<char>(c));
  }
};

std::string fold(std::string_view text);

}  // namespace trapline
