#include "report/style.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace trapline {
namespace {

constexpr int kDefaultWidth = 80;
constexpr int kNarrowest = 40;  // below that, wrapping helps nobody
constexpr int kWidest = 100;    // longer lines are hard to read

std::string_view value_of(const Surroundings& surroundings, const char* name) {
  const char* value = surroundings.variable(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool wants_color(const Surroundings& surroundings) {
  if (!value_of(surroundings, "NO_COLOR").empty()) return false;  // no-color.org: set and not empty
  const std::string_view force = value_of(surroundings, "CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return surroundings.is_terminal && value_of(surroundings, "TERM") != "dumb" &&
         value_of(surroundings, "CLICOLOR") != "0";
}

bool is_utf8(const Surroundings& surroundings) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale(value_of(surroundings, name));
    if (locale.empty()) continue;
    std::ranges::transform(locale, locale.begin(), [](unsigned char c) { return std::tolower(c); });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

Surroundings look_around(int descriptor) {
  Surroundings out;
  out.is_terminal = ::isatty(descriptor) == 1;
  winsize size{};
  if (out.is_terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) out.columns = size.ws_col;
  std::error_code error;
  out.directory = std::filesystem::current_path(error).string();
  out.variable = [](const char* name) -> const char* { return std::getenv(name); };
  return out;
}

Style resolve_style(ColorChoice choice, const Surroundings& surroundings) {
  Style style;
  style.color = choice == ColorChoice::kAlways || (choice == ColorChoice::kAuto && wants_color(surroundings));
  style.unicode = is_utf8(surroundings);
  style.directory = surroundings.directory;
  style.width =
      surroundings.columns > 0 ? std::clamp(surroundings.columns, kNarrowest, kWidest) : kDefaultWidth;
  return style;
}

}  // namespace trapline
