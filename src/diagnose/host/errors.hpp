// Host-side look-alikes: exceptions that PyTorch raises on the host, before any kernel runs, and that are
// easily taken for a device-side assert (requirements A8, A9, E3). One row of the catalogue per wording.
//
// To teach Trapline a new wording, add one row to the host_rows_*.cpp file of its family.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/cause.hpp"
#include "core/finding.hpp"

namespace trapline::diagnose {

class HostCase;
struct HostError;

struct HostErrorRow {
  std::string_view id;          // "linear.shapes"; stable, unique
  std::string_view exceptions;  // exception type names, separated by '|'
  std::string_view pattern;     // RE2 over the message, anchored at its start
  Cause cause;
  std::string_view op;        // public name; empty: the writer takes it from the call
  std::string_view argument;  // the argument that does not fit; may be empty
  // Writes summary and fix (and what else the message tells) from the captures and the facts.
  void (*write)(const HostCase& host_case, Finding& finding);
  std::vector<std::string_view> samples;  // real messages, the first one from torch 2.13; tests run them all
  // Where the message alone is not enough: whether the facts are those of this row. Such rows come first.
  bool (*when)(const HostCase& host_case) = nullptr;
};

// The whole table, in the order in which rows are tried.
std::span<const HostErrorRow* const> host_error_rows();

// The row whose exception type and pattern fit; nullptr when it is none of Trapline's business. Linear in the
// length of the message.
const HostErrorRow* find_host_error(std::string_view exception, std::string_view message);

}  // namespace trapline::diagnose
