// What the names of a traceback speak for: positions, labels, sampling, a language model ... The words stand
// in topics.def.
#pragma once

#include <cstdint>
#include <string_view>

#include "log/events/event.hpp"

namespace trapline {

enum class Topic : std::uint8_t {
  kPositions,
  kEmbeddings,
  kLabels,
  kSampling,
  kSegmentation,
  kLanguageModel,
  kBoxes,
  kMatching,
  kLoss,
};

// Whether a source line or a condition speaks of it.
bool speaks_of(std::string_view code, Topic topic);

// Whether the frames do. Positions and embeddings are looked for in the deepest frames that are not
// PyTorch's, the others in all of them.
bool speaks_of(const Traceback& traceback, Topic topic);

// Whether a frame itself does.
bool speaks_of(const LogFrame& frame, Topic topic);

// Whether the word stands in the text between characters that are no letters.
bool has_word(std::string_view text, std::string_view word);

std::string lower(std::string_view text);

}  // namespace trapline
