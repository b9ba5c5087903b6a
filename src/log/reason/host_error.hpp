// A host exception of a log, in the form in which a live one is explained.
#pragma once

#include "diagnose/diagnose.hpp"
#include "log/reason/decide.hpp"

namespace trapline {

// The exception that a line of the log tells of, as far as the log has its facts. `event.host` is its row.
diagnose::HostError host_error_of(const Event& event, const EventContext& scene);

}  // namespace trapline
