#include "report/lines.hpp"

#include <algorithm>

#include "report/utf8.hpp"

namespace trapline {
namespace {

constexpr std::string_view kReset = "\x1b[0m";

std::string_view escape_of(Paint paint) {
  switch (paint) {
    case Paint::kBold:
      return "\x1b[1m";
    case Paint::kError:
      return "\x1b[1;31m";
    case Paint::kGutter:
      return "\x1b[1;94m";  // as rustc: plain blue cannot be read on black
    case Paint::kHelp:
      return "\x1b[1;32m";
    case Paint::kNote:
      return "\x1b[1;36m";
    case Paint::kFaint:
      return "\x1b[2m";
    case Paint::kPlain:
      break;
  }
  return "";
}

// The longest beginning of `text` that is at most `width` columns wide, at least one character.
std::string_view head_of(std::string_view text, int width) {
  int used = 0;
  std::size_t i = 0;
  while (i < text.size()) {
    const CodePoint point = decode_utf8(text, i);
    used += width_of(point.value);
    if (used > width && i > 0) break;
    i += point.length;
  }
  return text.substr(0, i);
}

}  // namespace

std::string clean(std::string_view text, const Style& style) {
  std::string safe = printable(text);
  return style.unicode ? safe : ascii(safe);
}

// The end of the piece that starts at `begin` and should stay on one line: up to the next space, but a range,
// a shape ("[0, 195)") and what stands in back-quotes hold together when they are short.
std::size_t end_of_piece(std::string_view text, std::size_t begin, int width) {
  constexpr int kMaxGlued = 40;
  constexpr std::size_t kMaxBytes = 160;
  const std::size_t space = std::min(text.find(' ', begin), text.size());
  std::size_t end = space;
  for (std::size_t i = begin; i < end; ++i) {
    const char c = text[i];
    if (c != '[' && c != '`') continue;
    const std::string_view near = text.substr(0, begin + kMaxBytes);
    const std::size_t close = c == '`' ? near.find('`', i + 1) : near.find_first_of("])", i + 1);
    if (close == std::string_view::npos) break;
    const std::size_t whole = std::min(near.find(' ', close), near.size());
    if (width_of(text.substr(begin, whole - begin)) > std::min(kMaxGlued, width)) break;
    end = std::max(end, whole);
    i = close;
  }
  return end;
}

std::vector<std::string> wrap(std::string_view text, int width, std::size_t most) {
  width = std::max(width, 8);
  std::vector<std::string> lines;
  std::string line;
  int used = 0;
  bool complete = true;
  const auto push = [&] {
    lines.push_back(std::move(line));
    line.clear();
    used = 0;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = end_of_piece(text, i, width);
    std::string_view word = text.substr(i, end - i);
    i = end + 1;
    if (word.empty()) continue;
    if (used > 0 && used + 1 + width_of(word) > width) push();
    if (lines.size() >= most) {
      complete = false;
      break;
    }
    if (used > 0) line += ' ', ++used;
    while (width_of(word) > width - used) {
      std::string_view head = head_of(word, width - used);
      // A path breaks after a folder.
      const std::size_t slash = head.rfind('/');
      if (slash != std::string_view::npos && slash > head.size() / 2) head = head.substr(0, slash + 1);
      line += head;
      word.remove_prefix(head.size());
      push();
      if (lines.size() >= most) break;
    }
    if (lines.size() >= most) {
      complete = word.empty() && i >= text.size();
      break;
    }
    line += word;
    used += width_of(word);
  }
  if (used > 0 || lines.empty()) push();
  if (!complete) lines.back() = std::string(head_of(lines.back(), width - 4)) + " ...";
  return lines;
}

std::string shorten(std::string_view text, int width, const Style& style) {
  if (width_of(text) <= width) return std::string(text);
  const std::string_view dots = style.unicode ? "…" : "...";
  return std::string(head_of(text, std::max(1, width - width_of(dots)))) + std::string(dots);
}

std::vector<Line> labelled(const Line& label, std::string_view text, const Style& style, std::size_t most,
                           int hanging) {
  const int indent = width_of(label);
  const int rest = hanging < 0 ? indent : hanging;
  std::vector<Line> lines;
  for (std::string& part : wrap(text, style.width - std::max(indent, rest), most)) {
    Line line =
        lines.empty() ? label : Line{{std::string(static_cast<std::size_t>(rest), ' '), Paint::kPlain}};
    line.push_back({std::move(part), Paint::kPlain});
    lines.push_back(std::move(line));
  }
  return lines;
}

int width_of(const Line& line) {
  int width = 0;
  for (const Span& span : line) width += width_of(span.text);
  return width;
}

std::string render(const std::vector<Line>& lines, const Style& style) {
  std::string out;
  for (const Line& line : lines) {
    std::string text;
    for (const Span& span : line) {
      const bool painted = style.color && span.paint != Paint::kPlain && !span.text.empty();
      if (painted) text += escape_of(span.paint);
      text += span.text;
      if (painted) text += kReset;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

}  // namespace trapline
