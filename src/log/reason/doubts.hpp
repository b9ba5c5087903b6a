// What makes a message less sure than its row: how little of it is there.
#pragma once

#include "log/events/event.hpp"

namespace trapline {

// Of events that are wordings.
bool is_bare_number(const Event& event);
bool is_short_text(const Event& event);
bool is_tiny_refusal(const Event& event);

// Whether a statement asserts something that only the host knows (a shape, a type, a length): whatever it
// raised was raised there, also where the log ends before the error itself.
bool asserts_of_host(std::string_view code);

}  // namespace trapline
