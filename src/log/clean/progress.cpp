#include "log/clean/progress.hpp"

#include <charconv>

namespace trapline {
namespace {

// "00:03," or "1:02:03<"
bool starts_with_clock(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789:");
  const std::string_view clock = text.substr(0, end);
  return end != text.npos && (text[end] == ',' || text[end] == '<') && clock.size() >= 5 &&
         clock[clock.size() - 3] == ':';
}

// Where a bar at the start of `segment` ends: behind "it/s]", "s/it, loss=0.1]", or behind "100%|####|"
// alone. 0: none.
std::size_t end_of_bar(std::string_view segment) {
  // tqdm's meter: "..., 3.61it/s, loss=0.4]" or "?it/s]", also with other units (batch/s, s/batch, ex/s,
  // B/s).
  const std::size_t open = segment.find('[');
  const bool percent = segment.find("%|") != segment.npos;
  std::size_t from = percent ? segment.find("%|") : 0;
  if (percent) {
    const std::size_t bar_end = segment.find('|', from + 2);
    if (bar_end == segment.npos) return 0;
    from = bar_end;
  } else if (open == segment.npos) {
    return 0;
  }
  const std::size_t meter = segment.find('[', from);
  if (meter == segment.npos || meter > from + 64) return 0;
  const std::size_t close = segment.find(']', meter);
  if (close == segment.npos) return 0;
  const std::string_view inside = segment.substr(meter, close - meter);
  const bool rate = inside.find("it/s") != inside.npos || inside.find("s/it") != inside.npos ||
                    inside.find("B/s") != inside.npos || inside.find("/s") != inside.npos;
  const bool clock = inside.find(':') != inside.npos && inside.find('<') != inside.npos;
  if (!rate && !(percent && clock)) return 0;
  // Without a total it is told from other brackets by its clock: "12it [00:03, 3.61it/s]".
  if (!percent && !starts_with_clock(inside.substr(1))) return 0;
  return close + 1;
}

}  // namespace

bool is_progress_bar(std::string_view segment) {
  const std::size_t end = end_of_bar(segment);
  if (end == 0) return false;
  return segment.find_first_not_of(" \t,", end) == segment.npos;
}

std::string_view without_progress_bar(std::string_view segment) {
  // Several bars may be glued to each other before the text.
  while (true) {
    const std::size_t end = end_of_bar(segment);
    if (end == 0) return segment;
    const std::string_view rest = segment.substr(end);
    if (rest.find_first_not_of(" \t,") == rest.npos) return segment;
    segment = rest;
  }
}

int progress_in(std::string_view text) {
  const std::size_t percent = text.rfind("%|");
  if (percent == text.npos) return text.find("?it/s]") == text.npos ? -1 : 0;
  std::size_t begin = percent;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  int value = -1;
  std::from_chars(text.data() + begin, text.data() + percent, value);
  return value > 100 ? -1 : value;
}

}  // namespace trapline
