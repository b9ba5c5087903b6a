// Host-side look-alikes: exceptions that PyTorch raises on the host, before any kernel runs, and that are
// easily taken for a device-side assert (requirements A8, A9, E3). One row per message, for exceptions of a
// running program and for lines of a log (src/log) alike.
//
// To teach Trapline a new message, add one row to the rows_*.cpp file of its family.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "catalogue/wordings.hpp"
#include "core/cause.hpp"
#include "core/finding.hpp"

namespace trapline::diagnose {

class HostCase;
struct HostError;

// What a log leaves open that the exception itself would tell.
struct InLog {
  Certainty certainty = Certainty::kDetermined;
  Refine refine = Refine::kNothing;
  std::string_view argument = {};  // as the assertions of device code name it, where that is another name
};

struct HostErrorRow {
  std::string_view id;          // "linear.shapes"; stable, unique
  std::string_view exceptions;  // exception type names, separated by '|'
  std::string_view pattern;     // RE2 over the message, anchored at its start
  std::string_view
      phrases;  // what every such message holds, in logs: alternatives by '|', "..." between parts
  Cause cause;
  std::string_view op;        // public name; empty: the writer takes it from the call
  std::string_view argument;  // the argument that does not fit; may be empty
  // Writes summary and fix (and what else the message tells) from the captures and the facts.
  void (*write)(const HostCase& host_case, Finding& finding);
  std::vector<std::string_view> samples;  // real messages, the first one from torch 2.13; tests run them all
  // Where the message alone is not enough: whether the facts are those of this row. Such rows come first.
  bool (*when)(const HostCase& host_case) = nullptr;
  InLog in_log = {};
};

// The whole table, in the order in which rows are tried.
std::span<const HostErrorRow* const> host_error_rows();

// The row whose exception type and pattern fit; nullptr when it is none of Trapline's business. Linear in the
// length of the message.
const HostErrorRow* find_host_error(std::string_view exception, std::string_view message);

// A message in a line that may hold more: who wrote it, when, and the type of the exception.
struct HostMessage {
  const HostErrorRow* row = nullptr;
  std::string_view text;  // from the message's first word to the end of the line
};

// The first of `rows` whose pattern fits somewhere in the line; those of the exception's own type before
// others (`exception` may be empty). Rows for which the message is not enough do not fit.
std::optional<HostMessage> find_host_message(std::span<const HostErrorRow* const> rows,
                                             std::string_view exception, std::string_view line);

}  // namespace trapline::diagnose
