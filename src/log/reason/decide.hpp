// From one event and what stands around it to a cause, and how sure of it the text allows one to be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "log/events/event_stream.hpp"
#include "log/reason/context.hpp"

namespace trapline {

// What a decision may look at besides the event itself.
struct EventContext {
  const Traceback* traceback = nullptr;  // that belongs to the event
  SurfaceStatement surface;
  Hints hints;                       // of all streams of the source
  bool blocking = false;             // launches were blocking: the frame is the launch
  const Event* other_run = nullptr;  // a host check's message, from the same program run on the CPU
  const Traceback* other_traceback = nullptr;
  bool beside_peers = false;       // other processes complain about one that is gone
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
  // A host check's message: what is said of it when it is caught live.
  std::optional<Finding> live;
};

Decision decide(const Event& event, const EventContext& scene);

// The same, when an assertion's own line is not in the log and nothing tells of it but where the log ends.
Decision decide_unseen_assert(const EventContext& scene);

// Which event of a job is the root: the higher, the nearer.
enum class Precedence : std::uint8_t {
  kNever,
  kEnded,      // that a process ended with an error, and nothing of why
  kBeside,     // only stands beside failures, but names a cause
  kPeer,       // complains about another process
  kDeath,      // that a process died, and how
  kTrouble,    // a GPU's failure, in words that tell no more; they may as well be somebody's who tells of one
  kFollower,   // usually follows a context that is already lost
  kDriver,     // what the kernel's driver saw: the process's own words tell more
  kException,  // an exception of which the catalogue knows nothing
  kHost,       // a fault of the host program
  kFailure,    // a failure of its own process that the catalogue knows
  kAssert,     // a device-side assertion's own line
};
Precedence precedence(const Event& event);

}  // namespace trapline
