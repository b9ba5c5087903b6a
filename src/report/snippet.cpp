#include "report/snippet.hpp"

#include <algorithm>
#include <string>

#include "report/utf8.hpp"

namespace trapline {
namespace {

constexpr int kTab = 4;

// One character of the source line as it is shown.
struct Cell {
  std::string text;
  int width = 1;
  bool blank = false;
};

std::vector<Cell> cells_of(std::string_view code, const Style& style) {
  std::vector<Cell> cells;
  int column = 0;
  for (std::size_t i = 0; i < code.size();) {
    const CodePoint point = decode_utf8(code, i);
    const std::string_view bytes = code.substr(i, point.length);
    i += point.length;
    Cell cell;
    if (point.value == '\t') {
      cell.width = kTab - column % kTab;
      cell.text = std::string(static_cast<std::size_t>(cell.width), ' ');
    } else if (bytes == "\n" || bytes == "\r") {
      continue;
    } else {
      cell.text = clean(bytes, style);
      cell.width = width_of(cell.text);
    }
    cell.blank = point.value == ' ' || point.value == '\t';
    column += cell.width;
    cells.push_back(std::move(cell));
  }
  return cells;
}

// Half-open ranges of cells.
struct Part {
  std::size_t first = 0, last = 0;
  bool empty() const { return first >= last; }
};

// The characters to underline.
Part operation_of(const Frame& frame, const std::vector<Cell>& cells) {
  const auto size = static_cast<std::int64_t>(cells.size());
  if (frame.column < 1 || frame.column > size) return {};
  Part part{static_cast<std::size_t>(frame.column - 1), static_cast<std::size_t>(frame.column)};
  // The end of a call that goes on in the next line lies before its start or beyond the line.
  const std::int64_t end = frame.end_column <= frame.column ? frame.column + 1 : frame.end_column;
  part.last = static_cast<std::size_t>(std::min(end - 1, size));
  if (frame.end_column > 0 && frame.end_column <= frame.column) part.last = cells.size();
  while (part.last > part.first && cells[part.last - 1].blank) --part.last;
  return part;
}

int width_of(const std::vector<Cell>& cells, Part part) {
  int width = 0;
  for (std::size_t i = part.first; i < part.last; ++i) width += cells[i].width;
  return width;
}

// The part of the line that is shown: the operation and as much around it as there is room for.
Part window_of(const std::vector<Cell>& cells, Part line, Part operation, int room) {
  // The beginning of the line tells most of it: it stays when the operation, or a good part of it, fits
  // behind it.
  if (!operation.empty() && (width_of(cells, {line.first, operation.last}) <= room ||
                             width_of(cells, {line.first, operation.first}) <= room / 3)) {
    operation = {line.first, line.first};
  }
  Part window = operation.empty() ? Part{line.first, line.first} : operation;
  window.first = std::max(window.first, line.first);
  window.last = std::max(window.last, window.first);
  while (window.last > window.first + 1 && width_of(cells, window) > room) --window.last;
  int used = width_of(cells, window);
  bool grew = true;
  while (grew) {
    grew = false;
    if (window.first > line.first && used + cells[window.first - 1].width <= room) {
      used += cells[--window.first].width;
      grew = true;
    }
    if (window.last < line.last && used + cells[window.last].width <= room) {
      used += cells[window.last++].width;
      grew = true;
    }
  }
  return window;
}

}  // namespace

int gutter_width(const Frame& frame) {
  return static_cast<int>(std::to_string(std::max<std::int64_t>(frame.line, 0)).size()) + 1;
}

std::vector<Line> snippet(const Frame& frame, const Style& style) {
  // Cropping looks at every character, so a line of a megabyte (minified, hostile) is cut before.
  constexpr std::size_t kMaxBytes = 4096;
  const std::vector<Cell> cells = cells_of(cut_utf8(frame.code, kMaxBytes), style);
  Part line{0, cells.size()};
  while (!line.empty() && cells[line.last - 1].blank) --line.last;
  while (!line.empty() && cells[line.first].blank) ++line.first;
  if (line.empty() || frame.line <= 0) return {};
  Part operation = operation_of(frame, cells);
  if (operation.first < line.first || operation.last > line.last) operation = {};

  const int gutter = gutter_width(frame);
  const std::string dots = style.unicode ? "…" : "...";
  int room = style.width - gutter - 2;
  Part window = line;
  if (width_of(cells, line) > room) window = window_of(cells, line, operation, room - 2 * width_of(dots));
  const bool cropped_left = window.first > line.first;
  const bool cropped_right = window.last < line.last;

  std::string code;
  std::string before;
  std::string marks;
  if (cropped_left) code += dots, before.append(static_cast<std::size_t>(width_of(dots)), ' ');
  for (std::size_t i = window.first; i < window.last; ++i) {
    code += cells[i].text;
    const auto width = static_cast<std::size_t>(cells[i].width);
    if (i < operation.first) before.append(width, ' ');
    if (i >= operation.first && i < operation.last) marks.append(width, '^');
  }
  if (cropped_right) code += dots;

  const std::string empty(static_cast<std::size_t>(gutter), ' ');
  const std::string bar = "|";
  std::vector<Line> lines;
  lines.push_back({{empty + bar, Paint::kGutter}});
  lines.push_back({{std::to_string(frame.line) + " " + bar, Paint::kGutter}, {" " + code, Paint::kPlain}});
  if (!marks.empty()) {
    lines.push_back({{empty + bar, Paint::kGutter}, {" " + before, Paint::kPlain}, {marks, Paint::kError}});
  }
  return lines;
}

}  // namespace trapline
