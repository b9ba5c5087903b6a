// Vocabularies that are lists of byte strings and their ranks: tiktoken's files and Mistral's tekken.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

namespace trapline::check {

// The greatest rank of a tiktoken file plus 1: a line is the token in base64, a space and its rank. nullopt:
// it has another form.
std::optional<std::int64_t> count_ranks(std::span<const std::byte> bytes);

// The ids that a tekken.json can give, special tokens included; nullopt: it has another form.
std::optional<std::int64_t> tekken_size(const nlohmann::json& file);

}  // namespace trapline::check
