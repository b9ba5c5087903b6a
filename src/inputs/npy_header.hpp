// The header of NumPy's .npy format, versions 1 to 3: where the elements begin and how they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "inputs/elements.hpp"

namespace trapline::inputs {

inline constexpr std::size_t kMaxNpyHeader = std::size_t{1}
                                             << 20U;  // NumPy itself writes a few hundred bytes

struct NpyHeader {
  Encoding encoding;
  bool fortran_order = false;
  bool complex = false;  // sizes ends with a 2: real and imaginary part
  std::vector<std::int64_t> sizes;
  std::size_t data_offset = 0;
  std::int64_t data_bytes = 0;
  std::string no_numbers;  // why the elements are none ("text", "structured"); the rest is then unset
};

bool is_npy(std::span<const std::byte> bytes);
// From the first bytes of the array; kMaxNpyHeader of them are always enough. `path` and `base` (the offset
// of the first byte in the file) are for the error.
Result<NpyHeader> read_npy_header(std::span<const std::byte> bytes, const std::string& path,
                                  std::uint64_t base = 0);

}  // namespace trapline::inputs
