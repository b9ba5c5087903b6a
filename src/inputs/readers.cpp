#include <array>

#include "inputs/formats.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

#define TRAPLINE_FORMAT(name) &name(),
std::span<const Reader* const> readers() {
  static const std::array kReaders{
#include "inputs/formats.def"
  };
  return kReaders;
}
#undef TRAPLINE_FORMAT

const Reader* find_reader(const Source& source) {
  for (const Reader* reader : readers()) {
    if (reader->knows(source)) return reader;
  }
  return nullptr;
}

}  // namespace trapline::inputs
