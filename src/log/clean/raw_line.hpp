// What the reader hands to the cleaning: one line as it stands in the source.
#pragma once

#include <cstdint>
#include <string_view>

namespace trapline {

// A line (or a piece of one that is too long) that is to be cleaned and delivered; without its line feed.
class RawLineSink {
 public:
  virtual ~RawLineSink() = default;
  virtual void raw_line(std::string_view raw, std::int64_t number, bool shortened) = 0;
};

}  // namespace trapline
