// The window: a sliding piece of one source's text, from which the lines that may matter are taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "log/clean/raw_line.hpp"
#include "log/read/scan.hpp"

namespace trapline {

// Which lines are delivered depends on the text alone, never on the pieces it arrives in:
//  - a line with a hit, always (weak hits only while the budget lasts);
//  - with the first hit, the head of the source (versions, arguments, world size);
//  - what surrounds a hit, up to kAround bytes on each side, paid from a budget; when a log is so full of
//  hits that the
//    budget is spent, one line behind each strong hit (the source line of a frame) and what the budget
//    regains;
//  - a source without any hit that is shorter than kHead, when the reader asks for it.
class Window {
 public:
  static constexpr std::size_t kHead = std::size_t{64} * 1024;
  static constexpr std::size_t kAround = std::size_t{32} * 1024;
  static constexpr std::size_t kBlock = std::size_t{512} * 1024;
  static constexpr std::size_t kLongLine = std::size_t{64} * 1024;  // longer ones are cut into pieces

  Window(RawLineSink& sink, bool prefilter);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Room for the next bytes, and how many of them were filled in. Complete lines are delivered at once.
  char* room(std::size_t& size);
  void filled(std::size_t size);
  // The end of the source: its last line needs no line feed. `unasked`: deliver a short source without hits
  // too.
  void finish(bool unasked);

  // For the next source.
  void reset();

  std::uint64_t bytes() const { return base_ + end_; }
  std::int64_t lines() const { return lines_; }
  std::int64_t shortened() const { return shortened_; }
  std::int64_t delivered() const { return delivered_; }
  bool hit() const { return hit_; }
  bool unfinished() const { return unfinished_; }

 private:
  void process(std::size_t limit, bool cut);
  void take_last_of_glog();
  void take_end();
  void take_hit(const Hit& hit, std::size_t block, std::size_t limit);
  void deliver_head(std::size_t limit);
  void surround(std::size_t to, std::size_t limit);
  void deliver(std::size_t start, std::size_t end);
  void count_to(std::size_t to);
  bool at_line_start(std::size_t position) const;
  std::size_t line_start(std::size_t position, std::size_t lowest) const;
  std::size_t line_end(std::size_t position, std::size_t limit) const;
  void slide();

  RawLineSink& sink_;
  bool prefilter_;
  std::vector<char> buffer_;
  std::vector<Hit> hits_;
  std::string head_;
  std::uint64_t base_ = 0;       // offset of the buffer in the source
  std::size_t end_ = 0;          // of what was filled
  std::size_t scanned_ = 0;      // processed up to here
  std::size_t done_ = 0;         // delivered or passed over up to here
  std::size_t counted_ = 0;      // line feeds are counted up to here ...
  std::int64_t number_ = 1;      // ... where this line starts
  std::uint64_t follow_ = 0;     // offset in the source up to which lines follow the last hit
  std::uint64_t free_line_ = 0;  // offset of one line that is delivered without a look at the budget
  std::int64_t budget_ = 0;      // bytes of surroundings that strong and weak hits may still have
  std::int64_t flood_budget_ = 0;
  std::int64_t* active_budget_ = &budget_;  // who pays for what follows
  std::uint64_t paid_ = 0;                  // offset up to which the budget was regained
  std::int64_t lines_ = 0;
  std::int64_t shortened_ = 0;
  std::int64_t delivered_ = 0;
  std::int64_t counted_long_ = 0;  // the number of the last line counted in shortened_
  char last_kept_ = '\n';          // the byte before the buffer
  bool hit_ = false;
  bool unfinished_ = false;
};

}  // namespace trapline
