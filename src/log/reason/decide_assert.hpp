// What a device-side assertion's own line says of its cause, with what stands around it.
#pragma once

#include "log/reason/decide.hpp"

namespace trapline {

// `event` is of kind kAssert.
Decision decide_assert(const Event& event, const EventContext& scene);

// Whether an index of an embedding's table was a token's id or a position: goes into `d`.
void decide_embedding(const EventContext& scene, Decision& d);

}  // namespace trapline
