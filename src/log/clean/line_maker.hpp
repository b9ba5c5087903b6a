// The one place that makes clean lines (log/line.hpp says what that is); one instance per reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "log/clean/json_line.hpp"
#include "log/clean/prefix.hpp"
#include "log/clean/raw_line.hpp"
#include "log/line.hpp"

namespace trapline {

class LineMaker : public RawLineSink {
 public:
  explicit LineMaker(LineSink& sink) : sink_(sink) {}

  // A new source; its name may tell the rank. The other form: what is known of it otherwise.
  void begin(std::string_view source) { begin(source, origin_of_path(source)); }
  void begin(std::string_view source, Origin origin);
  void raw_line(std::string_view raw, std::int64_t number, bool shortened) override;
  // The end of the source: what waited for the rest of its line is a line now.
  void end();
  bool replaced() const { return replaced_; }

 private:
  bool take_recording(std::string_view text, const Line& line);
  void tell_recorded(bool all);
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
  std::string tidied_;
  std::string recorded_;  // of a terminal's recording: what was printed behind its last line end
  std::int64_t recorded_at_ = -1;
  std::vector<std::string_view> parts_;
};

}  // namespace trapline
