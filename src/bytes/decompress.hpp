// gzip, zstd, bzip2 and xz, recognized by their magic numbers, as streams of flat memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "bytes/source.hpp"

namespace trapline {

enum class Compression : std::uint8_t { kNone, kGzip, kZstd, kBzip2, kXz };

inline constexpr std::size_t kMagicSize = 6;

// From the first bytes of a file; fewer than kMagicSize are fine.
Compression compression_of(std::string_view magic);
std::string_view name_of(Compression compression);

// Several members or frames in a row are one text, as with the formats' own tools. A truncated or broken
// archive gives what comes before the damage, then a problem that names the offset in the compressed file.
std::unique_ptr<ByteSource> decompress(Compression compression, ByteSource& compressed);

}  // namespace trapline
