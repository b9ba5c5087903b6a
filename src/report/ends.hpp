// Which of a program's faults ended it, and which ones it caught: the exception that ended it decides.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "report/collected.hpp"

namespace trapline {

struct Settled {
  bool uncaught = false;       // some finding is of an exception that nobody caught
  bool caught_before = false;  // the findings that are left were caught, and nothing else is known of the end
  std::string other;  // the exception that ended the program and is no fault; no finding is left then
  std::vector<CollectedFinding> taken;          // what was caught before `other`
  std::map<std::string, std::uint64_t> caught;  // how often by code; without those that are left
};

// Takes out of `collected` the findings that the program caught, when something else is known to have ended
// it. `failed`: it did not end well; after a good end everything stays, and is counted.
Settled settle(Collected& collected, bool failed);

// "the program caught 61 faults (TL101, TL105)"; empty: it caught none.
std::string sentence_about(const std::map<std::string, std::uint64_t>& caught);

// "caught: [TL103] embedding: input[0, 3] is 1000, but ... (server.py:41), 3 times": what was caught at each
// line, five of them at most. A server's fault cannot be had again at will.
std::vector<std::string> lines_about(const std::vector<CollectedFinding>& findings,
                                     const std::map<std::string, std::uint64_t>& caught,
                                     std::string_view directory);

}  // namespace trapline
