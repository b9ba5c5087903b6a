// What NumPy and PyTorch say themselves of numbers that they make.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/finding.hpp"
#include "diagnose/frame.hpp"

namespace trapline::diagnose {

// Where NumPy, or PyTorch, warned that it had made such numbers.
struct Warned {
  Frame frame;
  std::string text;  // "divide by zero encountered in log"
};

// "NumPy warned at env.py:20 of `divide by zero encountered in log`, in `gain = np.log(power)`: ..."
inline std::string warned_text(const Warned& warned) {
  const std::string code = stripped(warned.frame.code);
  return fmt::format("{} warned at {} of `{}`{}: look at what was given there",
                     warned.text.find("():") == std::string::npos ? "NumPy" : "PyTorch",
                     file_and_line(warned.frame), warned.text.substr(0, warned.text.find(". ")),
                     code.empty() ? "" : fmt::format(", in `{}`", code));
}

}  // namespace trapline::diagnose
