// One data set, as one column; a data set of records, as one column for each member.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "inputs/hdf5/library.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

// `path`: of the data set in its file, "/train/labels". `file_bytes`: the file's size, against which claims
// are held. Why it could not be read; empty: it was, or has nothing to check.
std::optional<std::string> read_data_set(hid_t data_set, const std::string& path, std::uint64_t file_bytes,
                                         Sink& sink);

}  // namespace trapline::inputs
