// Between the HDF5 reader and libtrapline_hdf5.so, which is loaded at the first such file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/result.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

// Called once in a process, which must be one of its own: libhdf5 crashes on some damaged files. Data sets
// that are sound are read whatever the others are; `problem` is the first that was not.
using Hdf5Read = void (*)(const std::string& path, std::span<const std::byte> bytes, Sink& sink,
                          std::optional<Error>& problem);
inline constexpr char kHdf5ReadName[] = "trapline_hdf5_read";  // its type is Hdf5Read

}  // namespace trapline::inputs
