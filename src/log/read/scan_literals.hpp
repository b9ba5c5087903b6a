// What a line must hold to be looked at, and the tables that find it (a Teddy: each literal is given to one
// of eight buckets, and a byte position of the text keeps a bucket when six bytes from there could be its
// literals').
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "log/read/scan.hpp"

namespace trapline::scan {

struct Literal {
  std::string_view text;  // lower case
  HitKind kind;
};

// To make the reader see one more wording, add one row in scan_literals.cpp; four bytes at least.
std::span<const Literal> literals();

inline constexpr std::size_t kWindow = 6;  // bytes of a literal that the vectors compare

struct Entry {
  std::uint32_t start;    // the first four bytes of its window, folded
  std::uint16_t literal;  // row of literals()
  std::uint8_t offset;    // where its window starts
};

struct Tables {
  alignas(64) std::array<std::array<std::uint8_t, 16>, kWindow> low;   // by the low four bits: buckets
  alignas(64) std::array<std::array<std::uint8_t, 16>, kWindow> high;  // by the high four bits
  std::array<std::array<Entry, 64>, 8> buckets;
  std::array<std::uint8_t, 8> sizes;
  std::array<std::uint64_t, 1024> grams;  // 65,536 bits: hashes of the windows' first four bytes
};

const Tables& tables();

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Whether `literal` (lower case) stands at `position`.
bool matches(std::string_view block, std::size_t position, std::string_view literal);

// Four bytes with letters folded (other bytes fold too; that only costs a look).
inline std::uint32_t folded(const char* at) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, at, 4);
  return bytes | 0x20202020U;
}
inline unsigned gram(const char* at) { return (folded(at) * 0x85ebca6bU) >> 16; }

// Whether a window can start at `at`: what most candidates fail. Four bytes must be readable.
inline bool may_start(const Tables& tables, const char* at) {
  const unsigned hash = gram(at);
  return (tables.grams[hash / 64] >> (hash % 64) & 1) != 0;
}

// Looks at a candidate that the vectors found; returns the hit's literal or -1. `position` is the window's.
int verify(const Tables& tables, std::string_view block, std::size_t position, unsigned buckets,
           std::size_t& start);

// Where to go on after a hit.
std::size_t after_hit(std::string_view block, std::size_t start, HitKind kind);

}  // namespace trapline::scan
