// The header of a .gguf file (llama.cpp): its metadata and where its tensors lie. Format: docs/gguf.md of
// ggml.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace trapline::inputs {

struct GgufTensor {
  std::string name;
  std::uint32_t type = 0;              // ggml_type
  std::vector<std::int64_t> sizes;     // row-major: the reverse of the file's order
  std::uint64_t begin = 0;             // in the file
  std::optional<std::uint64_t> bytes;  // nullopt: a type that is not known
};

struct GgufHeader {
  std::map<std::string, std::int64_t, std::less<>> integers;     // and booleans
  std::map<std::string, std::string, std::less<>> texts;         // of at most 256 bytes
  std::map<std::string, std::int64_t, std::less<>> array_sizes;  // elements of the arrays
  std::vector<GgufTensor> tensors;
};

bool is_gguf(std::span<const std::byte> bytes);
// "Q4_K"; empty: not known.
std::string_view gguf_type_name(std::uint32_t type);
// An error where the file is damaged, or ends before its last tensor does.
Result<GgufHeader> read_gguf_header(std::span<const std::byte> bytes, const std::string& path);

}  // namespace trapline::inputs
