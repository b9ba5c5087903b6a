// The catalogue's phrases in a stream of lines: messages, conditions of assertions, and the names around
// those.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/asserts.hpp"
#include "catalogue/wordings.hpp"
#include "log/events/messages.hpp"

namespace trapline {

inline constexpr std::size_t kMinWrap = 40;  // characters: nobody wraps lines at less

// A name that an assertion's line consists of.
struct AssertPart {
  enum class Kind : std::uint8_t { kFile, kKernel, kAssertion, kBlock, kThread } kind;
  const AssertRow* row;  // kFile, kKernel: the first row with this name
  std::int64_t at;       // where it ends, in folded characters since the beginning of the stream
};

struct LineMatches {
  std::vector<const WordingRow*> wordings;   // of the host checks at most one
  const WordingRow* host_wording = nullptr;  // that one ...
  HostCheck host;                            // ... and what the line says of it
  std::vector<AssertPart> parts;             // in the order in which they stand
  const AssertRow* condition = nullptr;      // the longest one; the first row with this text
  bool spanning = false;                     // a message of `wordings` began on the line before
  bool assertion = false;                    // the word itself is among the parts
  std::int64_t end = 0;  // of the line, in folded characters since the beginning of the stream
};

class MessageMatcher {
 public:
  // Phrases may begin on the line before; messages only when that one was long enough to be wrapped
  // (`after_long`). `exception`: the type of the exception whose line this is; may be empty. What is returned
  // lives until the next call, and views the text.
  const LineMatches& line(std::string_view text, bool after_long, std::string_view exception = {});

 private:
  void found(const CataloguePhrase& phrase, std::int64_t line_begin, bool after_long);
  void keep_the_longest();
  void look_for_patterns(std::string_view text);
  void choose_host_check(std::string_view text, bool after_long, std::string_view exception);

  Phrases::State state_ = 0;
  std::int64_t folded_ = 0;  // characters so far
  std::uint32_t longest_condition_ = 0;
  std::vector<const WordingRow*> host_wordings_;          // host checks of which a phrase was found ...
  std::vector<const diagnose::HostErrorRow*> host_rows_;  // ... and their rows
  struct Span {
    std::int64_t begin, end;  // in folded characters since the beginning of the stream
  };
  std::vector<Span> spans_;  // where each of matches_.wordings stands, until the host checks are chosen
  std::string before_;       // the line before, when it was long enough to be wrapped
  LineMatches matches_;
};

}  // namespace trapline
