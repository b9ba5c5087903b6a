// Lines of JSON records on all threads of the sink, to its columns in the order of the file.
#pragma once

#include <cstddef>

#include "inputs/reader.hpp"

namespace trapline::inputs {

inline constexpr std::size_t kJsonStretchBytes = std::size_t{256} << 10U;

// `stretch_bytes`: what a thread reads at a time. What the sink is told does not depend on it; with more than
// the file has, all records are read one after the other.
Result<bool> read_json_lines(const Source& source, Sink& sink, std::size_t stretch_bytes = kJsonStretchBytes);

}  // namespace trapline::inputs
