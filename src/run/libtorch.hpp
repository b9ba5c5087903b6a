// C++ programs with libtorch: the guard comes in by LD_PRELOAD, into them only.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace trapline {

// The names of the libraries that an ELF file asks for (DT_NEEDED); none for anything else. Bounded: a
// damaged file gives what could be read.
std::vector<std::string> needed_libraries(const std::filesystem::path& file);

// True when a word of the command line is such a program itself (`mpirun -n 2 ./train`), or when
// TRAPLINE_LIBTORCH is 1, for those that are started by a script or link libtorch through a library of their
// own.
bool uses_libtorch(const std::vector<std::string>& arguments, std::span<const std::string> environment);

// Where guards for libtorch lie: those of the build folder `prefix`, and the user's cache.
std::string libtorch_folders(const std::filesystem::path& prefix, std::span<const std::string> environment);

}  // namespace trapline
