// The number of pieces in a sentencepiece model, by the wire format of protocol buffers alone.
//
// The format has two fields that matter here, so neither libsentencepiece nor protobuf is worth its weight:
// both would build the whole model in memory first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace trapline::check {

// ModelProto.pieces; nullopt when the bytes are no such message. Every read is bounds-checked.
std::optional<std::int64_t> count_pieces(std::span<const std::byte> bytes);

}  // namespace trapline::check
