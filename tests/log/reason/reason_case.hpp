// A log as text, cleaned line by line into the reasoner: what the reader does, without its prefilter.
#pragma once

#include <string_view>

#include "log/clean/line_maker.hpp"
#include "log/reason/reasoner.hpp"

namespace trapline {

struct Source {
  std::string_view name;
  std::string_view text;
  int rank = -1;
};

inline void feed(Reasoner& reasoner, const Source& source) {
  LineMaker lines(reasoner);
  Origin origin;
  origin.rank = source.rank;
  lines.begin(source.name, origin);
  std::int64_t number = 0;
  std::string_view rest = source.text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    lines.raw_line(rest.substr(0, end), ++number, false);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  reasoner.end_of_source(source.name, {});
}

inline Report explain(std::string_view text) {
  Reasoner reasoner;
  feed(reasoner, {"job.log", text});
  return reasoner.finish();
}

// What is known of it while it may go on: its last line is not judged.
inline Report explain_so_far(std::string_view text) {
  Reasoner reasoner;
  feed(reasoner, {"job.log", text});
  return reasoner.finish(false);
}

inline Report explain(std::initializer_list<Source> sources) {
  Reasoner reasoner;
  for (const Source& source : sources) feed(reasoner, source);
  return reasoner.finish();
}

// The root; a case without one fails where it is used.
inline Finding root(std::string_view text) {
  const Report report = explain(text);
  return report.findings.empty() ? Finding{} : report.findings.front();
}

}  // namespace trapline
