// One process's output (as far as lines can be told apart), read line by line into events.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/events/assert_assembler.hpp"
#include "log/events/event.hpp"
#include "log/events/frames.hpp"
#include "log/events/message_matcher.hpp"
#include "log/line.hpp"

namespace trapline {

class EventStream {
 public:
  // `order` counts over all streams.
  void line(const Line& line, std::int64_t& order);

  const std::vector<Event>& events() const { return events_; }
  const std::vector<Traceback>& tracebacks() const { return frames_.tracebacks(); }
  Hints hints() const { return hints_; }
  // The rank that torchrun's summary says failed first; -1: none.
  int first_failed_rank() const { return first_failed_rank_; }
  // Nothing more will come.
  void finish(std::int64_t& order);
  // The indented line before the first exception: a source line whose frame was not copied. Often empty.
  const std::string& lone_code() const { return lone_code_; }
  // One of the last lines, where it speaks of a failure in words that the catalogue does not know; nullopt:
  // none. To be asked of a stream without any failure.
  // Whether one of the last lines says that the program reached its end.
  bool ended_well() const;
  std::optional<Event> nan_before_cut() const;
  std::optional<Event> last_words() const;
  // The last line, where it is none that ordinary runs end with; nullopt: it is one, or there is no line. For
  // a stream that has nothing else to say.
  std::optional<Event> open_end() const;
  // Its number; 0: none.
  std::int64_t last_line() const { return last_.empty() ? 0 : last_.back().number; }
  // Forgets what only the root of a report needs, to keep memory flat over thousands of files.
  void compact();

  int rank = -1;
  std::int64_t pid = -1;
  std::string host, source;
  std::size_t most_places = 4096;  // blocks and threads kept per assertion

 private:
  bool repeated(std::string_view text);
  void add_assert(const FoundAssert& found, const Line& origin, std::int64_t& order);
  void add_messages(std::string_view text, const LineMatches& matches, const Line& origin,
                    std::int64_t& order, bool in_assert);
  void add_wording(const WordingRow& row, std::string_view text, const Line& origin, std::int64_t& order,
                   const HostCheck& check = {});
  void add_exception(std::string_view text, const LineMatches& matches, const Line& origin,
                     std::int64_t& order);
  bool take_back_exception(std::string_view text, const LineMatches& matches, const Line& origin,
                           std::string& whole);
  void note_launcher(std::string_view text);
  Event& push(Event event, std::string_view text, const Line& origin, std::int64_t& order);

  struct KeptLine {
    std::string text, source;
    std::int64_t number = 0;
    bool excused = false;                 // the catalogue knows the line, and that it is none of a failure
    bool calm = false;                    // its logger's level says that it is no error
    const WordingRow* missing = nullptr;  // what does no harm only where the program goes on behind it
  };
  static Event event_of(const KeptLine& line, const WordingRow& row);
  void note_last(std::string_view text, const Line& origin, const LineMatches& matches);

  bool is_loaders_note(const WordingRow& row, const Line& origin) const;
  void note_going_on(std::string_view text, const Line& origin);
  void warn_head(int traceback);
  bool is_unraisable(const Line& origin) const;
  void note_gradient(std::string_view text, const Line& origin);
  void note_nan(std::string_view text, const Line& origin);

  int nan_gradients_ = 0;          // steps in a row, the last ones
  KeptLine nan_gradient_;          // the last of them
  std::deque<KeptLine> last_;      // lines with words in them
  std::int64_t loaders_note_ = 0;  // line in which a loader said that it goes on
  std::int64_t unraisable_ = 0;    // line of an exception that Python could only print
  KeptLine nan_loss_;              // the last line that reports one
  bool numbers_follow_ = false;    // behind the last of them
  KeptLine piece_;                 // the first line that is a piece of an assertion
  std::vector<Event> events_;
  FrameParser frames_;
  MessageMatcher matcher_;
  AssertAssembler asserts_;
  Hints hints_;
  std::int64_t last_report_ = -1;  // the last line that reports a device-side assert
  bool launcher_speaks_ = false;   // torchrun's summary has begun
  int first_failed_rank_ = -1;
  std::string last_head_, last_tail_;  // of the last assertion line, around block and thread
  int last_assert_ = -1;               // its event
  std::string before_, lone_code_;
  std::int64_t last_number_ = 0;
  std::size_t before_length_ = 0;  // of the line before
  std::int64_t before_number_ = 0;
  std::int64_t wrap_from_ = 0;  // where a run of lines began that may be one, wrapped
};

}  // namespace trapline
