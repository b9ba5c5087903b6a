// How an ordinary line looks, and how a complaint does: what decides whether a log in which nothing is known
// may be called clean. A library, a tool or a kernel may say that it failed without any word that a table
// has; then it is the last line, and it is a sentence. What programs print while all is well has a form: it
// counts, measures, draws a bar or a table, shows data, names a file, or says that something was done.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace trapline {

enum class EndWeight : std::uint8_t {
  kNever,      // no ordinary end, whatever else the line holds: a stack's frame, a level of a failure
  kSurely,     // a measure, a bar, a level of a logger that is no failure's: also where the line complains
  kComplains,  // says that something is not as it should be
  kPerhaps,    // has a form that failures have, too
};

struct EndForm {
  std::string_view id;
  EndWeight weight;
  std::string_view pattern, sample;
};

std::span<const EndForm> end_forms();

// Whether a log that holds nothing known may end with the line.
bool ends_ordinarily(std::string_view line);

// Whether the line is a bar that has some way to go: a log that ends with it may be of a run that goes on,
// or of one that was ended without a word.
bool stops_midway(std::string_view line);

// Whether the line complains, and has no form that is certain: as a heading of the numbers behind it, too.
bool complains(std::string_view line);

}  // namespace trapline
