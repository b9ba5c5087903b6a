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
  std::string limit_text{};     // where the program cuts by that setting: "max_length=cfg.n_positions + 8"
  std::int64_t limit_line = 0;  // of it
  bool limit_more = false;      // its source adds to what the setting says
  bool limit_follows = false;   // it reads the setting itself, and would grow with it
  std::int64_t usable() const { return rows - offset; }
  // The limit lets more through than fits, and a larger table would move it along.
  bool limit_is_beyond() const {
    return !limit_text.empty() && limit_follows && (limit_more || value > usable());
  }
};

// What to do about the program's own limit; empty where none is known.
std::string limit_advice(const PositionFact& table);

}  // namespace trapline::diagnose
