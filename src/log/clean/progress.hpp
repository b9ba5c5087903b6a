// Progress bars, and text that was glued to them.
#pragma once

#include <string_view>

namespace trapline {

// Whether a segment that a carriage return overwrote held nothing but a progress bar.
bool is_progress_bar(std::string_view segment);

// `segment` without a progress bar at its start, when text was glued to it; else `segment`.
std::string_view without_progress_bar(std::string_view segment);

// How far the last bar in `text` says the program is, in percent; -1 without a bar. A bar without a total
// says 0 until its first step is done, then nothing.
int progress_in(std::string_view text);

}  // namespace trapline
