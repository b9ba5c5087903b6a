// The prefilter: finds, at the speed of memory, the places in a block of text that may speak of a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace trapline {

// What a literal's line is worth when a log has very many of them.
enum class HitKind : std::uint8_t {
  kFlood,   // assertion lines: kept always, with less and less of their surroundings
  kStrong,  // errors, tracebacks, frames: kept always, with surroundings
  kWeak,    // hints such as NaN: kept while they are few
};

struct Hit {
  std::uint32_t position;  // in the block
  HitKind kind;
};

// Appends to `hits` what one block holds, in order, and returns the number of line feeds in it. After a hit
// that is not weak the rest of its line is not searched (or the next kHitStride bytes of it): one hit is
// enough to keep a line. Letters match in either case. Blocks end at line ends, or cut a line that is too
// long anyway.
std::size_t scan_block(std::string_view block, std::vector<Hit>& hits);

// The same by trying every literal at every position: what scan_block is tested against.
std::size_t scan_block_reference(std::string_view block, std::vector<Hit>& hits);

std::size_t count_newlines(std::string_view text);

inline constexpr std::size_t kHitStride = 4096;

}  // namespace trapline
