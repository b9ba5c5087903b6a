// Text reduced to what survives copying: the form in which the catalogue's wordings are matched.
//
// Kept are letters and digits, in lower case. Blanks, punctuation, operators, quotes and line breaks go, so a
// sentence that was wrapped in mid word, lost its back-quotes, gained full-width punctuation or Markdown
// stars still reads the same. Letters that OCR and fonts confuse become one: 0 is o; 1 and i are l; m is rn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trapline {

class Folder {
 public:
  // Calls emit(char) for each character that is left of `text`.
  template <class Emit>
  static void feed(std::string_view text, Emit&& emit) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte < 0x80) {
        if (byte == '\\' && i + 1 < text.size() && is_escape(text[i + 1])) {
          ++i;  // a literal \n, \t, \r: white space in JSON and in pasted strings
          continue;
        }
        if (byte == '&') {
          if (const std::size_t length = entity_length(text.substr(i)); length != 0) {
            i += length - 1;
            continue;
          }
        }
        put(kFolded[byte], emit);
      } else if (const unsigned wide = full_width(text, i); wide != 0) {
        put(kFolded[wide], emit);
        i += 2;
      }
    }
  }

 private:
  static const unsigned char kFolded[128];

  static bool is_escape(char c) { return c == 'n' || c == 't' || c == 'r'; }
  static std::size_t entity_length(std::string_view text);  // of "&nbsp;" and the like; 0: no entity
  // ASCII of a full-width character at `at` (three bytes, U+FF01 to U+FF5E); 0: none.
  static unsigned full_width(std::string_view text, std::size_t at);

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
