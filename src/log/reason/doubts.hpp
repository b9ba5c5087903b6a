// What makes a message less sure than its row: how little of it is there.
#pragma once

#include "log/events/event.hpp"

namespace trapline {

// Of events that are wordings.
bool is_bare_number(const Event& event);
bool is_short_text(const Event& event);
bool is_tiny_refusal(const Event& event);

}  // namespace trapline
