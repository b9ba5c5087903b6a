// Finds the parts of Trapline that go into the user's processes.
#pragma once

#include <filesystem>

#include "core/result.hpp"

namespace trapline {

struct Installation {
  std::filesystem::path python;   // the folder that holds the package `trapline`
  std::filesystem::path library;  // libtrapline.so
};

// `executable` is the path of the running program. Looks inside the package of a wheel (trapline/_bin,
// trapline/_lib), next to the program (<prefix>/bin, <prefix>/lib, <prefix>/share), and, when it lies in a
// build folder, in the source tree that it was built from.
Result<Installation> locate(const std::filesystem::path& executable);

// The running program's own file; empty when that cannot be told.
std::filesystem::path this_executable();

}  // namespace trapline
