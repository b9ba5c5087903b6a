// What an exception is about of which the catalogue knows nothing.
#pragma once

#include <string_view>

#include "log/reason/decide.hpp"

namespace trapline {

// What Python itself raises for a program's own names, files and texts: whatever word of a GPU stands in the
// message is a name there.
bool is_of_program(std::string_view exception);

// An exception that tells which option of the program to give: a check of its own settings.
bool advises_option(const Event& event);

// `event` is of kind kException, or of a row that only happens to be named in such a message.
Decision decide_exception(const Event& event, const EventContext& scene);

}  // namespace trapline
