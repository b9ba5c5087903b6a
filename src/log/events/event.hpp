// What is left of a log once it is read: events, each with the traceback it belongs to.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "catalogue/asserts.hpp"
#include "catalogue/wordings.hpp"
#include "core/finding.hpp"
#include "diagnose/host/errors.hpp"

namespace trapline {

enum class FrameStyle : std::uint8_t { kPython, kNotebook, kBox, kProse, kLua };

struct LogFrame {
  Frame frame;
  bool user = false;  // the user's own code; not an installed library
  FrameStyle style = FrameStyle::kPython;
  std::int64_t number = 0;  // its line in the log
};

struct Traceback {
  std::vector<LogFrame> frames;  // outermost first
  std::string exception;         // type name without modules; empty: cut off
  std::string message;
  std::int64_t first = 0, last = 0;  // lines in the log
  bool closed = false;
  bool calm = false;  // in lines whose logger says that they are no error

  const LogFrame* deepest() const { return frames.empty() ? nullptr : &frames.back(); }
  const LogFrame* deepest_user() const;
};

struct Coordinate {
  std::int32_t x = 0, y = 0, z = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 is the compiler's own
  auto operator<=>(const Coordinate&) const = default;
};

enum class EventKind : std::uint8_t {
  kAssert,      // a device-side assertion's own line
  kHostAssert,  // the same words printed by host code
  kWording,     // a row of the catalogue's messages
  kException,   // an exception of which the catalogue knows nothing
};

struct Event {
  EventKind kind = EventKind::kWording;
  const AssertRow* assert_row = nullptr;
  const WordingRow* wording = nullptr;
  const diagnose::HostErrorRow* host = nullptr;  // kWording: a host check, of which the line has ...
  std::string host_message;                      // ... the whole message
  bool phrase_only = false;             // of a host check's message no more than a phrase was legible
  bool by_condition = true;             // kAssert: the condition was legible
  bool warned = false;                  // the line is a warning: the program went on
  bool in_warning = false;              // ... or a warning of what a program cannot do without
  bool shows_nan = false;               // the values that stand below the message hold one
  bool cut = false;                     // kAssert: a piece of the line is missing
  bool known_file = false;              // kAssert: the file is one of the table's
  std::string file, kernel, condition;  // kAssert, as printed
  std::int64_t file_line = 0;
  std::int64_t bound = -1;  // of a compiled index check
  std::string exception, message;
  std::int64_t count = 0;                              // lines that said the same
  std::set<std::pair<Coordinate, Coordinate>> places;  // blocks and threads, at most EventStream::most_places
  std::int64_t order = 0;                              // in the whole input
  std::int64_t number = 0;                             // line in the source
  std::string source, text;                            // where it was first seen
  int traceback = -1;                                  // of the stream; -1: none
  int rank = -1;                                       // named inside the line itself
  std::string op;                                      // a collective named by the message
};

}  // namespace trapline
