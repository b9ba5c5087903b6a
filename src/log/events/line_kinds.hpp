// What kind of line it is, whatever it says: a warning, advice, a line with its program's name.
#pragma once

#include <string_view>

namespace trapline {

bool is_warning(std::string_view text);
bool is_pythons_warning(std::string_view text);
bool is_about_errors(std::string_view text);
bool begins_alike(std::string_view one, std::string_view other);
bool names_its_program(std::string_view text);

}  // namespace trapline
