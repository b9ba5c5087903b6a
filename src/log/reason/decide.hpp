// From one event and what stands around it to a cause, and how sure of it the text allows one to be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "log/events/event_stream.hpp"
#include "log/reason/context.hpp"

namespace trapline {

// What a decision may look at besides the event itself.
struct Scene {
  const Traceback* traceback = nullptr;  // that belongs to the event
  Surface surface;
  Hints hints;                       // of all streams of the source
  bool blocking = false;             // launches were blocking: the frame is the launch
  const Event* other_run = nullptr;  // a host check's message, from the same program run on the CPU
  const Traceback* other_traceback = nullptr;
  bool only_consequences = false;  // nothing but followers and peers was printed
};

struct Decision {
  Cause cause = Cause::kInsufficientEvidence;
  std::vector<Cause> also;
  Certainty certainty = Certainty::kUnknown;
  std::optional<bool> device_assert;
  std::string op, argument;
  bool synchronous = false;  // the frame is the one at fault
  std::string because;       // what decided, when it is not the message itself
};

Decision decide(const Event& event, const Scene& scene);

// Which event of a context is the root: the higher, the nearer. 0: never.
int precedence(const Event& event);

}  // namespace trapline
