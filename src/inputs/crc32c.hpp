// The checksum of TFRecord's framing: CRC-32C (Castagnoli).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trapline::inputs {

std::uint32_t crc32c(std::span<const std::byte> bytes);
// As TFRecord stores it: rotated, and a constant added.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

}  // namespace trapline::inputs
