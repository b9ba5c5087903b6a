// Files that were built into the program: the hand-written texts of the cause pages and their examples.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trapline::cli {

struct EmbeddedFile {
  std::string_view name;  // without folder
  std::string_view text;
};

// Generated at build time (cmake/Embed.cmake).
std::span<const EmbeddedFile> embedded_files();

// The text of that file; empty when there is none.
inline std::string_view embedded_text(std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name == name) return file.text;
  }
  return {};
}

}  // namespace trapline::cli
