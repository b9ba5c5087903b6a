// The net below the tables: whether the last lines of a log speak of a failure in words that no row has.
#pragma once

#include <cstdint>
#include <string_view>

#include "catalogue/wordings.hpp"

namespace trapline {

enum class LastLine : std::uint8_t {
  kBad,   // speaks of a failure
  kOpen,  // tells nothing
  kCalm,  // has a word of failure, and says that there was none, or of what it is
  kWell,  // the program went on, or ended well
};

// What the line, one of the last of its log, speaks of. `is_last`: nothing comes behind it, so that its last
// word may have been cut off.
LastLine judge_last(std::string_view line, bool is_last);

// What such a line means; and one that is only no ordinary end (catalogue/ends.hpp).
const WordingRow& last_words();
const WordingRow& open_end();
// Of a bar with which a log stops in the midst of its work.
const WordingRow& unfinished();

// Whether the line reports a loss that is not finite: a run that ends with it has learned nothing.
bool reports_nan_loss(std::string_view line);
// What a line says of the norm of a step's gradient. A step alone may have one of NaN, where a scaler skips
// it.
// kNanUnscaled: the line says that no scaler is there to skip such a step.
enum class GradientNorm : std::uint8_t { kNotSaid, kFinite, kNan, kNanUnscaled, kSkipped };
GradientNorm gradient_norm_in(std::string_view line);

// What is said of something that is missing, and no sign that the program goes on: its logger's other lines,
// the answer of a question about it.
bool only_adds(std::string_view line);

// A question of whoever posted the log: no program's last words.
bool asks(std::string_view line);
const WordingRow& nan_loss();

// Of a line that is a piece of a device-side assertion, and no more of it is legible.
const WordingRow& piece_of_assertion();

}  // namespace trapline
