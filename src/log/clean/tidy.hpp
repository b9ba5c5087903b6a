// A line as it would stand without the damage that copying did to it.
#pragma once

#include <string>
#include <string_view>

namespace trapline {

// Undoes what can be undone inside one line: HTML entities, full-width punctuation, colour codes that lost
// their escape character, Markdown around it, a quote's ">", "^M" at the end, the frame of a box. The result
// is a piece of `text`, or lives in `storage`.
std::string_view tidy(std::string_view text, std::string& storage);

}  // namespace trapline
