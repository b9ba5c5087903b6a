// A traceback that was cut off before its last line.
#pragma once

#include "core/finding.hpp"
#include "log/events/event_stream.hpp"

namespace trapline {

// The first of the stream's; nullptr: none was.
const Traceback* cut_traceback(const EventStream& stream);

Finding finding_of_cut(const EventStream& stream, const Traceback& traceback);

}  // namespace trapline
