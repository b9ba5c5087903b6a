// How a process tells `trapline run` that it has a finding which is in no file, and could not be handed over
// either: no descriptor is left, or no memory. So the file by which the process said that it is guarded has a
// digit for it, and stays mapped.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace trapline {

// Writes the JSON object, without blanks at its ends, as FOLDER/guard-HOST-PID.TAG.json, with one member
// more: "lost", which is 0.
Result<std::string> write_guard_marker(const std::string& folder, const std::string& object);

// Makes that 1, without memory for it; forked children, which have no marker, tell it in their parent's. A
// process without one leaves an empty file lost-HOST-PID.TAG.json, or hands that over.
void mark_lost(std::string_view folder);

}  // namespace trapline
