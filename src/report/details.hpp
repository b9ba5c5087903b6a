// What is said of one finding, piece by piece: the same words on a terminal and in the formats for machines,
// which show them to people in the end. What these return still holds the program's own bytes: clean it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"

namespace trapline {

// The cause that a headline names: where nothing was decided, the likeliest one is only a place to look.
Cause headline_cause(const Finding& finding);

// What a finding is read with.
struct Reading {
  Command command = Command::kRun;
  bool several_ranks = false;
  std::string_view directory{};  // files below it are named relative to it
  bool verbose = false;
};

Reading reading_of(const Report& report, std::string_view directory = {}, bool verbose = false);

struct Detail {
  std::string_view label;  // "found"; empty: the text is a sentence of its own
  std::string text;
  int weight;  // when there is no room for all, the heaviest go first
};

// In the order in which they are read; none is empty.
std::vector<Detail> details_of(const Finding& finding, const Reading& reading);

// The headline without its code: the summary, or the cause's title.
std::string_view sentence_of(const Finding& finding);

// "rank 5", where the job has several and the sentence does not say it; else empty.
std::string rank_of(const Finding& finding, const Reading& reading);

// What stands before the sentence: "error[TL102] rank 5:".
std::string label_of(const Finding& finding, const Reading& reading);

// The place that the finding is about: the user's line; of data at rest, the record.
std::optional<Frame> place_of(const Finding& finding, Command command);

// A finding that is not the first one, with those that say the same.
struct Other {
  const Finding* first = nullptr;
  std::size_t count = 0;
  std::set<std::int64_t> ranks{};
  bool is_consequence = false;
  std::string text{};  // one line of it
};
std::vector<Other> others_of(const Report& report, std::string_view directory);

// "no fault found", for a report without findings.
std::string_view sentence_without_findings(const Report& report);

}  // namespace trapline
