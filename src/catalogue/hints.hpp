// Facts that a log states besides its failures, and that a decision may rest on.
#pragma once

#include <cstdint>

#include "core/enum_set.hpp"

namespace trapline {

enum class Hint : std::uint8_t {
  kAsynchronous,      // "kernel errors might be asynchronously reported": launches were not blocking
  kDsaAdvice,         // printed with any error since 1.13, also when launches were blocking
  kBlockingLaunches,  // CUDA_LAUNCH_BLOCKING=1 is stated
  kSegmentation,      // a 4-D tensor of class maps, masks, nnU-Net
  kDetection,         // the table header of a detector's training
  kFirstBatch,        // a progress bar at its start
  kLaterBatch,        // a progress bar that has moved far
  kClassIds,          // a message about category ids or label values
  kLabelsPrinted,     // a check or print of labels outside their range
  kNan,               // NaN was printed before
  kVocabulary,        // vocabulary or tokenizer printed
  kGeneration,        // open-end generation by a model of GPT-2's kind
  kTableLookup,       // TensorFlow's embedding_lookup
  kTooLong,           // a message that a sequence is longer than the model allows
};
using Hints = EnumSet<Hint>;

}  // namespace trapline
