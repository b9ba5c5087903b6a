// How a frame is named within a sentence.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "core/finding.hpp"

namespace trapline::diagnose {

// "main.py:61"
inline std::string file_and_line(const std::string& path, std::int64_t line) {
  const std::size_t slash = path.find_last_of("/\\");
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

inline std::string file_and_line(const Frame& frame) { return file_and_line(frame.file, frame.line); }

// A line of code without the blanks around it.
inline std::string stripped(const std::string& code) {
  const std::size_t begin = code.find_first_not_of(" \t");
  return begin == std::string::npos ? std::string()
                                    : code.substr(begin, code.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace trapline::diagnose
