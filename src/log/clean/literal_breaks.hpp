// Several lines that were pasted as one, with their line breaks written as \n.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// Parts of a line in which line breaks were written as \n, in order; `scratch` holds what had to be
// unescaped. One part, the line itself, when it has none. Windows paths (C:\new) and Python source ("a\nb")
// are left alone.
void split_literal_newlines(std::string_view line, std::string& scratch,
                            std::vector<std::string_view>& parts);

}  // namespace trapline
