#include "inputs/class_list.hpp"

#include <charconv>

namespace trapline::inputs {
namespace {

constexpr std::size_t kMaxNames = 100'000;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

// A scalar without its quotes and without a comment behind it.
std::string scalar(std::string_view text) {
  text = trimmed(text);
  if (!text.empty() && (text.front() == '\'' || text.front() == '"')) {
    const std::size_t end = text.find(text.front(), 1);
    return std::string(text.substr(1, end == text.npos ? text.npos : end - 1));
  }
  const std::size_t comment = text.find(" #");
  return std::string(trimmed(text.substr(0, comment)));
}

// "[a, 'b, c']", which may go over several lines; commas in quotes separate nothing.
void read_brackets(std::string_view text, std::vector<ClassName>& names) {
  char quote = '\0';
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size() && names.size() < kMaxNames; ++at) {
    const char c = text[at];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if ((c == '\'' || c == '"') && trimmed(text.substr(start, at - start)).empty()) {
      quote = c;
    } else if (c == ',' || c == ']') {
      std::string name = scalar(text.substr(start, at - start));
      if (!name.empty()) names.push_back({static_cast<std::int64_t>(names.size()), std::move(name)});
      start = at + 1;
      if (c == ']') return;
    }
    if (c == '\n' && quote == '\0' && trimmed(text.substr(start, at - start)).empty()) start = at + 1;
  }
}

}  // namespace

std::vector<ClassName> names_in_yaml(std::string_view text) {
  std::vector<ClassName> names;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (!line.starts_with("names:")) continue;
    const std::size_t bracket = line.find('[');
    if (bracket != line.npos) {
      const char* start = line.data() + bracket + 1;
      read_brackets({start, static_cast<std::size_t>(text.data() + text.size() - start)}, names);
      return names;
    }
    while (!text.empty() && names.size() < kMaxNames) {
      line = take_line(text);
      const std::string_view item = trimmed(line);
      if (item.empty() || item.starts_with('#')) continue;
      std::int64_t id = static_cast<std::int64_t>(names.size());
      const auto [end, problem] = std::from_chars(item.data(), item.data() + item.size(), id);
      const bool pair =
          problem == std::errc() && end != item.data() + item.size() && *end == ':' && line[0] == ' ';
      if (pair) {
        names.push_back(
            {id, scalar({end + 1, static_cast<std::size_t>(item.data() + item.size() - end - 1)}), false});
      } else if (item.starts_with("- ")) {
        names.push_back({static_cast<std::int64_t>(names.size()), scalar(item.substr(2))});
      } else {
        return names;
      }
    }
  }
  return names;
}

std::vector<ClassName> names_in_lines(std::string_view text) {
  std::vector<ClassName> names;
  while (!text.empty() && names.size() < kMaxNames) {
    const std::string_view name = trimmed(take_line(text));
    if (!name.empty()) names.push_back({static_cast<std::int64_t>(names.size()), std::string(name)});
  }
  return names;
}

}  // namespace trapline::inputs
