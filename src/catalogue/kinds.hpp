// What a message of the catalogue is: a failure, a complaint about another process, advice ...
#pragma once

#include <cstdint>

namespace trapline {

enum class WordingKind : std::uint8_t {
  kFault,         // names a cause of its own
  kDeviceAssert,  // the host's report of a device-side assert; the cause stands elsewhere
  kHostValue,     // a host check names the bad value: no kernel ran
  kHost,          // a fault of the host program
  kDeath,         // that a process died, and nothing of why: counts when nothing else does
  kTrouble,       // a GPU, or software of one, failed at something, in words that tell no more
  kFollower,      // usually follows a context that is already lost
  kPeer,          // a process complains about another one
  kContext,       // wraps other messages or adds to them; no cause
  kHint,          // advice printed with any error; no evidence
  kEvidence,      // no failure, but it speaks for a cause
};

enum class Device : std::int8_t { kNo, kYes, kUnknown };

}  // namespace trapline
