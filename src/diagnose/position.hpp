#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trapline::diagnose {

// The position table of the module that ran, and the text that it was given.
struct PositionFact {
  std::int64_t rows = 0, offset = 0;   // BART and RoBERTa leave their first rows out
  std::optional<std::int64_t> length;  // of the sequence
  std::string name;                    // "bert.embeddings.position_embeddings"
  std::string setting;                 // "max_position_embeddings", the configuration's word
  bool parameter = false;              // a parameter of its own, not an Embedding
  std::int64_t value = 0;              // what it says: the rows, or less where others are added to it
  std::int64_t usable() const { return rows - offset; }
};

}  // namespace trapline::diagnose
