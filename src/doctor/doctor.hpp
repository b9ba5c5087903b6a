// `trapline doctor`: what this machine, this Python and this environment are to Trapline. Whatever is asked
// may hang, print garbage or be missing: each question has a limit of time, and no answer is an answer.
#pragma once

#include <optional>
#include <string>

#include "core/finding.hpp"
#include "doctor/line.hpp"
#include "report/style.hpp"

namespace trapline::doctor {

struct Request {
  std::string python{};  // a program; empty: the python3 or python on PATH
  double seconds = 120;  // for everything that is asked of that Python
  bool self_test = false;
};

struct Diagnosis {
  Lines lines;
  std::optional<Report> found{};  // of the self-test: what Trapline reported of its bad call
};

Diagnosis examine(const Request& request);

bool has_problem(const Diagnosis& diagnosis);

// For people; the finding of the self-test comes last.
std::string to_text(const Diagnosis& diagnosis, const Style& style);
// {"trapline": ..., "verdict": "ok" or "problem", "lines": [...], "self_test": report}; docs/doctor.md.
std::string to_json_text(const Diagnosis& diagnosis);

}  // namespace trapline::doctor
