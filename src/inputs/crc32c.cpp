#include "inputs/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace trapline::inputs {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// Eight bytes at a time: table k is of a byte with k zero bytes behind it.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1U) != 0 ? (sum >> 1U) ^ kPolynomial : sum >> 1U;
    tables[0][byte] = sum;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t sum = ~std::uint32_t{0};
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    word ^= sum;
    sum = 0;
    for (std::size_t k = 0; k < 8; ++k) sum ^= kTables[7 - k][(word >> (8 * k)) & 0xFFU];
  }
  for (; at < bytes.size(); ++at) {
    sum = (sum >> 8U) ^ kTables[0][(sum ^ std::to_integer<std::uint32_t>(bytes[at])) & 0xFFU];
  }
  return ~sum;
}

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

}  // namespace trapline::inputs
