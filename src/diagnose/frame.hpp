// How a frame is named within a sentence.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/finding.hpp"

namespace trapline::diagnose {

// "main.py:61"
inline std::string file_and_line(const Frame& frame) {
  const std::size_t slash = frame.file.find_last_of("/\\");
  const std::string file = slash == std::string::npos ? frame.file : frame.file.substr(slash + 1);
  return frame.line > 0 ? fmt::format("{}:{}", file, frame.line) : file;
}

}  // namespace trapline::diagnose
