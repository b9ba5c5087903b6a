// The header of a .safetensors file: the tensors by name, checked so that each lies inside the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace trapline::inputs {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;  // as the format spells it: "BF16"
  std::vector<std::int64_t> sizes;
  std::uint64_t begin = 0, end = 0;  // from the first byte of the file
};

// In the order of their data. Overlaps, gaps, sizes that do not fit the shape, data behind the end of the
// file: an error. `path` is for the error.
Result<std::vector<SafetensorsTensor>> read_safetensors_header(std::span<const std::byte> bytes,
                                                               const std::string& path);

struct ShardedTensor {
  std::string name, file;  // file: a plain name in the folder of the index
};
// *.safetensors.index.json: which shard holds which tensor.
Result<std::vector<ShardedTensor>> read_safetensors_index(std::span<const std::byte> bytes,
                                                          const std::string& path);

// Bits per element; 0: no dtype of the format.
unsigned safetensors_bits(std::string_view dtype);

}  // namespace trapline::inputs
