#include "catalogue/fold.hpp"

#include <array>

namespace trapline {
namespace {

constexpr auto kTable = [] {
  std::array<unsigned char, 128> table{};
  for (unsigned c = 'a'; c <= 'z'; ++c) table[c] = static_cast<unsigned char>(c);
  for (unsigned c = 'A'; c <= 'Z'; ++c) table[c] = static_cast<unsigned char>(c - 'A' + 'a');
  for (unsigned c = '2'; c <= '9'; ++c) table[c] = static_cast<unsigned char>(c);
  table['0'] = 'o';
  table['1'] = table['i'] = table['I'] = 'l';
  return table;
}();

}  // namespace

const unsigned char TextFolder::kFolded[128] = {
#define R4(i) kTable[(i)], kTable[(i) + 1], kTable[(i) + 2], kTable[(i) + 3]
#define R16(i) R4(i), R4((i) + 4), R4((i) + 8), R4((i) + 12)
    R16(0),  R16(16), R16(32), R16(48), R16(64),
    R16(80), R16(96), R16(112)
#undef R16
#undef R4
};

std::string fold(std::string_view text) {
  std::string key;
  const auto emit = [&](char c) { key.push_back(c); };
  TextFolder::feed(text, emit);
  return key;
}

}  // namespace trapline
