#include "log/read/window.hpp"

#include <algorithm>
#include <cstring>

namespace trapline {
namespace {

constexpr std::int64_t kFloodBudget = 512
                                      << 10;  // the same for assertion lines: a flood of them needs no more
constexpr std::int64_t kBudget = 2 << 20;     // bytes of surroundings of one source, to begin with
constexpr std::uint64_t kRegain = 64;         // one byte regained per so many read

}  // namespace

Window::Window(RawLineSink& sink, bool prefilter)
    : sink_(sink), prefilter_(prefilter), buffer_(kAround + 2 * kBlock) {
  reset();
}

void Window::reset() {
  hits_.clear();
  head_.clear();
  base_ = 0;
  end_ = scanned_ = done_ = counted_ = 0;
  number_ = 1;
  follow_ = free_line_ = paid_ = 0;
  budget_ = kBudget;
  flood_budget_ = kFloodBudget;
  active_budget_ = &budget_;
  lines_ = shortened_ = delivered_ = counted_long_ = 0;
  last_kept_ = '\n';
  hit_ = unfinished_ = false;
}

char* Window::room(std::size_t& size) {
  if (buffer_.size() - end_ < kBlock) slide();
  size = std::min(kBlock, buffer_.size() - end_);
  return buffer_.data() + end_;
}

// Keeps what the next hit may want before it, and what was not processed.
void Window::slide() {
  std::size_t keep = scanned_ > kAround ? scanned_ - kAround : 0;
  if (!at_line_start(keep)) keep = line_end(keep, scanned_);
  if (keep == 0) return;
  if (counted_ < keep) count_to(keep);
  last_kept_ = buffer_[keep - 1];
  std::memmove(buffer_.data(), buffer_.data() + keep, end_ - keep);
  base_ += keep;
  end_ -= keep;
  scanned_ -= keep;
  counted_ -= keep;
  done_ = done_ > keep ? done_ - keep : 0;
}

void Window::filled(std::size_t size) {
  const std::size_t before = end_;
  end_ += size;
  if (head_.size() < kHead && base_ + before == head_.size()) {
    head_.append(buffer_.data() + before, std::min(size, kHead - head_.size()));
  }
  const void* feed = ::memrchr(buffer_.data() + before, '\n', size);
  if (feed != nullptr) {
    process(static_cast<std::size_t>(static_cast<const char*>(feed) - buffer_.data()) + 1, false);
  }
  // No line end in a whole block: the line is too long. Its bytes up to here are taken as pieces of it.
  while (end_ - scanned_ >= kBlock) process(scanned_ + kBlock / kLongLine * kLongLine, true);
}

void Window::finish(bool unasked) {
  unfinished_ = end_ > scanned_;
  if (unfinished_) {
    process(end_, false);
    ++lines_;
  }
  if (prefilter_) take_last_of_glog();
  if (!hit_ && unasked && bytes() <= kHead) {
    deliver(0, end_);
  } else if (prefilter_ && (hit_ || unasked)) {
    take_end();
  }
}

// glog's line of the level FATAL (or ERROR) is told by its first letter alone, "F0101 12:00:00": no literal
// finds it. It is the last one that a program prints, but for a stack.
void Window::take_last_of_glog() {
  constexpr std::size_t kTail = 8192;
  const auto is_digit = [&](std::size_t at) { return at < end_ && buffer_[at] >= '0' && buffer_[at] <= '9'; };
  for (std::size_t at = std::max(done_, end_ - std::min(end_, kTail)); at < end_; at = line_end(at, end_)) {
    if (!at_line_start(at) || (buffer_[at] != 'F' && buffer_[at] != 'E')) continue;
    if (!is_digit(at + 1) || !is_digit(at + 2) || !is_digit(at + 3) || !is_digit(at + 4)) continue;
    take_hit({static_cast<std::uint32_t>(at), HitKind::kStrong}, 0, end_);
    surround(end_, end_);
    return;
  }
}

// The last lines: they tell whether the program went on after what the log holds, and how one ends that holds
// nothing known.
void Window::take_end() {
  constexpr std::size_t kEnd = 1024;
  constexpr int kEndLines = 3;
  const std::size_t lowest = std::max(done_, end_ - std::min(end_, kEnd));
  std::size_t from = end_;
  for (int lines = 0; lines < kEndLines && from > lowest; ++lines) {
    const std::size_t start = line_start(from - 1, lowest);
    if (!at_line_start(start)) break;
    from = start;
  }
  deliver(from, end_);
  done_ = end_;
}

bool Window::at_line_start(std::size_t position) const {
  return (position == 0 ? last_kept_ : buffer_[position - 1]) == '\n';
}

std::size_t Window::line_start(std::size_t position, std::size_t lowest) const {
  if (position <= lowest) return lowest;
  const void* feed = ::memrchr(buffer_.data() + lowest, '\n', position - lowest);
  return feed == nullptr ? lowest
                         : static_cast<std::size_t>(static_cast<const char*>(feed) - buffer_.data()) + 1;
}

std::size_t Window::line_end(std::size_t position, std::size_t limit) const {
  const void* feed = std::memchr(buffer_.data() + position, '\n', limit - position);
  return feed == nullptr ? limit
                         : static_cast<std::size_t>(static_cast<const char*>(feed) - buffer_.data()) + 1;
}

// Makes number_ the line that starts at `to`: forward, or back for what stands before a hit.
void Window::count_to(std::size_t to) {
  const std::size_t from = std::min(to, counted_);
  const auto feeds =
      static_cast<std::int64_t>(count_newlines({buffer_.data() + from, std::max(to, counted_) - from}));
  number_ += to >= counted_ ? feeds : -feeds;
  counted_ = to;
}

// Takes [scanned_, limit), which are whole lines, or the next part of a line that is too long (`cut`).
void Window::process(std::size_t limit, bool cut) {
  if (!prefilter_) {
    const std::int64_t before = number_;
    hit_ = true;
    deliver(scanned_, limit);
    count_to(limit);
    lines_ += number_ - before;
    done_ = scanned_ = limit;
    return;
  }
  const std::size_t block = scanned_;
  hits_.clear();
  const std::size_t feeds = scan_block({buffer_.data() + block, limit - block}, hits_);
  lines_ += static_cast<std::int64_t>(feeds);
  for (const Hit& hit : hits_) take_hit(hit, block, limit);
  if (follow_ > base_ + done_) surround(std::min<std::uint64_t>(follow_ - base_, limit), limit);
  if (counted_ == block) {  // the common case: no line was delivered, and its line feeds are counted already
    number_ += static_cast<std::int64_t>(feeds);
    counted_ = limit;
  }
  scanned_ = limit;
  if (cut) done_ = limit;
}

void Window::take_hit(const Hit& hit, std::size_t block, std::size_t limit) {
  const std::size_t position = block + hit.position;
  if (position < done_) return;  // delivered with an earlier one
  // A line that is too long is taken in pieces of kLongLine.
  std::size_t start = line_start(position, std::max(done_, block));
  start += (position - start) / kLongLine * kLongLine;
  const std::size_t end = std::min(line_end(position, limit), start + kLongLine);
  if (!hit_) deliver_head(start);
  if (follow_ > base_ + done_) surround(std::min<std::uint64_t>(follow_ - base_, start), start);
  const std::uint64_t regained = (base_ + position - paid_) / kRegain;
  budget_ = std::min(budget_ + static_cast<std::int64_t>(regained), kBudget);
  paid_ += regained * kRegain;
  if (hit.kind == HitKind::kWeak) {
    if (budget_ < kBudget / 2) return;
    budget_ -= static_cast<std::int64_t>(end - start);
  }
  // Assertion lines by the thousand may not eat what is there for the traceback at the end.
  std::int64_t& purse = hit.kind == HitKind::kFlood ? flood_budget_ : budget_;
  const bool rich = hit.kind != HitKind::kWeak && purse > 0;
  if (rich) active_budget_ = &purse;
  if (rich && start > done_) {
    std::size_t lowest = std::max(done_, start > kAround ? start - kAround : 0);
    if (lowest > done_ && !at_line_start(lowest)) lowest = line_end(lowest, start);
    done_ = lowest;
    surround(start, start);
  }
  deliver(start, end);
  done_ = end;
  const std::uint64_t behind = base_ + end;
  if (rich) follow_ = behind + kAround;
  if (hit.kind == HitKind::kStrong) {
    free_line_ = behind;
    follow_ = std::max(follow_, behind + 1);
  }
}

// With the first hit: the lines that start in the first kHead bytes, up to `limit`.
void Window::deliver_head(std::size_t limit) {
  hit_ = true;
  const std::string_view head = head_;
  std::int64_t number = 1;
  for (std::size_t start = 0; start < base_ && start < head.size();) {  // no longer in the buffer
    const std::size_t feed = head.find('\n', start);
    if (feed == head.npos) break;
    sink_.raw_line(head.substr(start, feed - start), number++, false);
    ++delivered_;
    start = feed + 1;
  }
  if (base_ >= kHead || done_ >= limit) return;
  std::size_t to = std::min<std::size_t>(kHead - base_, limit);
  if (to <= done_) return;
  if (to < limit && !at_line_start(to)) to = line_end(to, limit);
  deliver(done_, to);
  done_ = to;
}

// Delivers the lines that start in [done_, to) and end before `limit`, as long as the budget lasts.
void Window::surround(std::size_t to, std::size_t limit) {
  while (done_ < to) {
    const std::size_t end = std::min(line_end(done_, limit), done_ + kLongLine);
    if (base_ + done_ != free_line_) {
      if (*active_budget_ <= 0) break;
      *active_budget_ -= static_cast<std::int64_t>(end - done_);
    }
    deliver(done_, end);
    done_ = end;
  }
  if (done_ < to) done_ = at_line_start(to) ? to : line_end(to, limit);
}

void Window::deliver(std::size_t start, std::size_t end) {
  count_to(start);
  while (start < end) {
    const std::size_t stop = line_end(start, end);
    const std::size_t piece = std::min(stop, start + kLongLine);
    std::string_view raw(buffer_.data() + start, piece - start);
    const bool complete = at_line_start(start) && (raw.ends_with('\n') || (piece == end_ && unfinished_));
    if (!complete && counted_long_ != number_) {
      counted_long_ = number_;
      ++shortened_;
    }
    const bool ends = raw.ends_with('\n');
    if (ends) raw.remove_suffix(1);
    sink_.raw_line(raw, number_, !complete);
    ++delivered_;
    if (ends) {
      ++number_;
      counted_ = piece;
    }
    start = piece;
  }
}

}  // namespace trapline
