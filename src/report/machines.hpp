// What the formats for machines share: where a finding is, in the terms of a repository; what is said of it;
// and what makes it the same finding in the next run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"
#include "report/details.hpp"
#include "report/style.hpp"

namespace trapline {

// A place in a file. Lines and columns are 1-based, 0: unknown; columns are characters.
struct Spot {
  std::string path;     // relative to the repository where it lies inside, with `/`; else as it is
  bool inside = false;  // of the repository
  std::int64_t line = 0, column = 0, end_column = 0;
};

// nullopt for what is no file: standard input, a cell of a notebook, code of `python -c`.
std::optional<Spot> spot_of(const Frame& frame, const Style& style);

// Where to show the finding: at place_of(), or else where it surfaced, or in the log that told it. nullopt:
// no file is known.
std::optional<Frame> shown_at(const Finding& finding, Command command);

// The headline, the details and the help, a line each, printable and bounded. Without the code.
std::vector<std::string> lines_for_people(const Finding& finding, const Reading& reading);

// One bounded line that a person reads.
std::string line_for_people(std::string_view text);

// 16 hexadecimal digits for each finding, in their order: made of the cause, the operation and the source
// line, not of values, times, ranks or line numbers, so that the same fault has the same one in the next run.
// The second of equal ones in a report gets ":2".
std::vector<std::string> fingerprints_of(const Report& report, const Style& style);

std::string render_sarif(const Report& report, const Style& style);       // SARIF 2.1.0
std::string render_github(const Report& report, const Style& style);      // workflow commands
std::string render_gitlab(const Report& report, const Style& style);      // Code Quality
std::string render_junit(const Report& report, const Style& style);       // JUnit's XML
std::string render_json_lines(const Report& report, const Style& style);  // a finding a line

// The same for a report that grows: returns the lines of findings that are new or say something else, and
// with `is_over` the line that ends the stream.
std::function<std::string(const Report& report, bool is_over)> stream_json_lines(const Style& style);

}  // namespace trapline
