// Lines as they would stand without the damage that copying did to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// Undoes what can be undone inside one line: HTML entities, full-width punctuation, Markdown around it, a
// quote's
// ">", ^M at the end, the frame of a box. A line into which several were pasted with literal "\n" becomes
// several. The views live as long as `text` and `storage`.
void tidy(std::string_view text, std::string& storage, std::vector<std::string_view>& lines);

// Text without blanks at both ends.
std::string_view trim(std::string_view text);

}  // namespace trapline
