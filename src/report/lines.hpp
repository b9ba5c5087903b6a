// Lines of coloured text that fit a terminal: the paper that the text writer writes on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/style.hpp"

namespace trapline {

enum class Paint : unsigned char { kPlain, kBold, kError, kGutter, kHelp, kNote, kFaint };

struct Span {
  std::string text;
  Paint paint = Paint::kPlain;
};

using Line = std::vector<Span>;

// Text from the user's program, made safe for this destination: see printable() and ascii().
std::string clean(std::string_view text, const Style& style);

// Breaks text between words so that no line is wider than `width`; a word that is wider is broken inside.
// The result has at least one line and at most `most` (the last one then ends in dots).
std::vector<std::string> wrap(std::string_view text, int width, std::size_t most);

// `text`, or its beginning and dots, in at most `width` columns.
std::string shorten(std::string_view text, int width, const Style& style);

// `label` (painted) followed by the text, wrapped, with the following lines indented as far as the label is
// wide, or by `hanging` columns when that is given.
std::vector<Line> labelled(const Line& label, std::string_view text, const Style& style, std::size_t most,
                           int hanging = -1);

int width_of(const Line& line);
std::string render(const std::vector<Line>& lines, const Style& style);

}  // namespace trapline
