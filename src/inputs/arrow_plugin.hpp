// Between the Arrow reader and libtrapline_arrow.so, which is loaded at the first Parquet or Arrow file:
// Arrow C++ is large, and everything else starts and works without it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/result.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

struct ArrowPart {
  std::string path;
  std::span<const std::byte> bytes;
  bool named = false;  // its pieces carry the path: the source is a folder
};

// The parts are one table, in this order. `problem` stays empty: read, or stopped by the sink.
using ArrowRead = void (*)(std::span<const ArrowPart> parts, Sink& sink, std::optional<Error>& problem);
inline constexpr char kArrowReadName[] = "trapline_arrow_read";  // its type is ArrowRead

}  // namespace trapline::inputs
