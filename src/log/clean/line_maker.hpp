// From raw lines to Lines: cleaning, carriage returns, JSON, prefixes, literal line breaks; one instance per
// reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "log/clean/prefix.hpp"
#include "log/clean/text.hpp"
#include "log/line.hpp"
#include "log/read/window.hpp"

namespace trapline {

class LineMaker : public RawLineSink {
 public:
  explicit LineMaker(LineSink& sink) : sink_(sink) {}

  void begin(std::string_view source);
  void raw_line(std::string_view raw, std::int64_t number, bool shortened) override;
  bool replaced() const { return replaced_; }

 private:
  void segment(std::string_view text, Line& line, Origin& origin, int depth);
  void note_progress(std::string_view bar);
  void emit(std::string_view text, Line& line, const Origin& origin);

  LineSink& sink_;
  std::string source_;
  Origin path_;
  bool replaced_ = false;
  int progress_ = -1;
  std::string clean_;
  std::string unescaped_;
  JsonLine json_;
  std::vector<std::string_view> parts_;
};

}  // namespace trapline
