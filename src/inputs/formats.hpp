// The readers by name; src/inputs/<name>.cpp has each.
#pragma once

#include "inputs/reader.hpp"

namespace trapline::inputs {

#define TRAPLINE_FORMAT(name) const Reader& name();
#include "inputs/formats.def"
#undef TRAPLINE_FORMAT

}  // namespace trapline::inputs
