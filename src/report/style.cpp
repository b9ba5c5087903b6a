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

std::string_view value_of(const TerminalInfo& terminal, const char* name) {
  const char* value = terminal.variable(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool wants_color(const TerminalInfo& terminal) {
  if (!value_of(terminal, "NO_COLOR").empty()) return false;  // no-color.org: set and not empty
  const std::string_view force = value_of(terminal, "CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return terminal.is_terminal && value_of(terminal, "TERM") != "dumb" &&
         value_of(terminal, "CLICOLOR") != "0";
}

bool is_utf8(const TerminalInfo& terminal) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale(value_of(terminal, name));
    if (locale.empty()) continue;
    std::ranges::transform(locale, locale.begin(), [](unsigned char c) { return std::tolower(c); });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

TerminalInfo detect_terminal(int descriptor) {
  TerminalInfo out;
  out.is_terminal = ::isatty(descriptor) == 1;
  winsize size{};
  if (out.is_terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) out.columns = size.ws_col;
  std::error_code error;
  out.directory = std::filesystem::current_path(error).string();
  out.variable = [](const char* name) -> const char* { return std::getenv(name); };
  return out;
}

Style resolve_style(ColorChoice choice, const TerminalInfo& terminal) {
  Style style;
  style.color = choice == ColorChoice::kAlways || (choice == ColorChoice::kAuto && wants_color(terminal));
  style.unicode = is_utf8(terminal);
  style.directory = terminal.directory;
  style.repository = value_of(terminal, "GITHUB_WORKSPACE");
  if (style.repository.empty()) style.repository = value_of(terminal, "CI_PROJECT_DIR");
  style.width = terminal.columns > 0 ? std::clamp(terminal.columns, kNarrowest, kWidest) : kDefaultWidth;
  return style;
}

}  // namespace trapline
