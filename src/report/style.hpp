// How a text report may look on its destination.
#pragma once

#include <functional>
#include <string>

#include "core/cause.hpp"

namespace trapline {

enum class ColorChoice : unsigned char { kAuto, kAlways, kNever };

struct Style {
  bool color = false;
  bool unicode = true;  // false: only ASCII is written
  int width = 80;       // columns of a line
  bool verbose = false;
  std::string directory;  // files below it are named relative to it; empty: as they are
  // For formats that machines read: the folder that their paths are relative to (GITHUB_WORKSPACE,
  // CI_PROJECT_DIR); empty: `directory`.
  std::string repository{};
  std::function<std::string(Cause)> page{};  // the page of a cause, in Markdown; empty: there is none
};

// What is known about a destination; filled from the machine by detect_terminal, by hand in tests.
struct TerminalInfo {
  bool is_terminal = false;
  int columns = 0;        // of the terminal; 0: unknown
  std::string directory;  // the one Trapline works in
  std::function<const char*(const char*)> variable = [](const char*) { return nullptr; };
};

TerminalInfo detect_terminal(int descriptor);

// auto: colour on a terminal that is not TERM=dumb, unless NO_COLOR is set; CLICOLOR_FORCE asks for it
// everywhere. The width is the terminal's, at most 100, and 80 elsewhere. Unicode as LC_ALL, LC_CTYPE or LANG
// say.
Style resolve_style(ColorChoice choice, const TerminalInfo& terminal);

}  // namespace trapline
