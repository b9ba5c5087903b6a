// One process's output (as far as lines can be told apart), read line by line into events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/events/assert_line.hpp"
#include "log/events/event.hpp"
#include "log/events/frames.hpp"
#include "log/line.hpp"

namespace trapline {

// Facts that a log states besides its failures.
struct Hints {
  bool async_hint = false;    // "kernel errors might be asynchronously reported": launches were not blocking
  bool dsa_hint = false;      // printed with any error since 1.13, also when launches were blocking
  bool blocking = false;      // CUDA_LAUNCH_BLOCKING=1 is stated
  bool segmentation = false;  // a 4-D tensor of class maps, masks, nnU-Net
  bool detection = false;     // the table header of a detector's training
  bool first_batch = false;   // a progress bar at its start
  bool later_batch = false;   // a progress bar that has moved far
  bool class_ids = false;     // a message about category ids or label values
  bool label_print = false;   // a check or print of labels outside their range
  bool nan = false;           // NaN was printed before
  bool vocabulary = false;    // vocabulary or tokenizer printed
  bool generation = false;    // open-end generation by a model of GPT-2's kind
  bool launcher = false;      // torchrun's summary has begun
  int launcher_rank = -1;     // the rank that it saw fail first
  bool lookup = false;        // TensorFlow's embedding_lookup
  bool too_long = false;      // a message that a sequence is longer than the model allows
};

class EventStream {
 public:
  // `order` counts over all streams.
  void line(const Line& line, std::int64_t& order);

  const std::vector<Event>& events() const { return events_; }
  const std::vector<Traceback>& tracebacks() const { return frames_.tracebacks(); }
  const Hints& hints() const { return hints_; }
  Hints& hints() { return hints_; }
  // Nothing more will come.
  void finish(std::int64_t& order);
  // The indented line before the first exception: a source line whose frame was not copied. Often empty.
  const std::string& lone_code() const { return lone_code_; }
  // Forgets what only the root of a report needs, to keep memory flat over thousands of files.
  void compact();

  int rank = -1;
  std::int64_t pid = -1;
  std::string host, source;
  std::size_t most_places = 4096;  // blocks and threads kept per assertion

 private:
  static constexpr std::size_t kShortestWrap = 40;  // nobody wraps lines at less

  struct Site {  // the last place in a CUDA source that was named
    std::string file, kernel;
    std::int64_t line = 0;
    std::int64_t at = -1;  // folded characters ago
    bool assertion = false, block = false, used = false;
  };

  bool repeated(std::string_view text);
  void scan(std::string_view text, const Line& origin, std::int64_t& order);
  void add_assert(const AssertLine& line, std::string_view text, const Line& origin, std::int64_t& order);
  void add_folded(const AssertRow& row, std::string_view text, const Line& origin, std::int64_t& order);
  void flush_site(const Line& origin, std::int64_t& order);
  void add_wording(const WordingRow& row, std::string_view text, const Line& origin, std::int64_t& order);
  void add_exception(std::string_view text, const Line& origin, std::int64_t& order);
  bool finish_open(std::string_view text, const Line& origin, std::int64_t& order);
  void drop_open();
  bool take_back_exception(std::string_view text, bool spanning, const Line& origin, std::string& whole);
  void add_numbered(std::string_view text, const Line& origin, std::int64_t& order);
  void notice(std::string_view text, const Line& origin);
  Event& push(Event event, std::string_view text, const Line& origin, std::int64_t& order);

  std::vector<Event> events_;
  FrameParser frames_;
  Hints hints_;
  Phrases::State state_ = 0;
  std::int64_t folded_ = 0;  // characters so far
  Site site_;
  std::string last_head_, last_tail_;  // of the last assertion line, around block and thread
  std::string before_, lone_code_;
  int last_assert_ = -1;
  std::int64_t last_number_ = 0;
  std::size_t before_length_ = 0;  // of the line before
  std::int64_t before_number_ = 0;
  std::string before_text_;       // the end of the line before, if that was long enough to be wrapped
  std::string open_text_;         // an assertion line without its end ...
  std::int64_t open_number_ = 0;  // ... up to this line
  bool pieced_ = false;           // the assertion at hand was put together of pieces
  std::string cut_text_;          // one whose end never came
  std::int64_t wrap_from_ = 0;    // where a run of lines began that may be one, wrapped
  std::int64_t block_at_ = -1, place_at_ = -1;  // folded characters: "block", "block ... thread"
  std::vector<const WordingRow*> hits_;
  std::vector<const AssertRow*> conditions_;
};

}  // namespace trapline
