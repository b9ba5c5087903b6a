// What a report for people says of a finding, piece by piece and in its order: the terminal and the page
// write the same words. The texts still hold the program's own bytes: clean or escape them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"

namespace trapline {

// The cause that a headline names: where nothing was decided, the likeliest one is only a place to look.
Cause headline_cause(const Finding& finding);

// Whether it is a report of a job of several ranks.
bool has_several_ranks(const Report& report);

struct Headline {
  std::string label;  // "error[TL102] rank 5:"
  std::string sentence;
};
Headline headline_of(const Finding& finding, bool several_ranks);

// The headline of a report without a finding.
std::string_view nothing_found(const Report& report);

// Where it happened: the origin, or, of data at rest, the first piece of evidence; no file: not known.
Frame place_of(const Finding& finding, Command command);

struct Detail {
  std::string_view label;  // "found"; empty: the text is a sentence of its own
  std::string text;
  int weight = 0;  // what is less important has more, and is left out first
};

struct DetailOptions {
  Command command = Command::kRun;
  bool several_ranks = false;
  bool verbose = false;
  std::string_view directory{};  // files below it are named relative to it
};

// Without those that have nothing to say.
std::vector<Detail> details_of(const Finding& finding, const DetailOptions& options);

// A finding that is not the first one, with those that say the same.
struct Other {
  const Finding* first = nullptr;
  std::size_t count = 0;
  std::set<std::int64_t> ranks;
  bool is_consequence = false;
  std::string text;  // one line of it
};
std::vector<Other> others_of(const Report& report, std::string_view directory);

}  // namespace trapline
